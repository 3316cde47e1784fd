import numpy as np
from PIL import Image as PillowImage, ImageDraw, ImageFont

from ._color_maps import color_map
from ._image import as_bytes, Image, srgb_numbers


# The error that gets the last colour of the map.
ERROR_SCALE = 0.1
ERROR_MAP = "magma"
# Smaller pictures are shown enlarged.
_LEAST_PIXELS = 200
_LINE, _CAPTION = 4, 18


def error_panels(image: Image, truth: Image) -> np.ndarray:
    """Puts a picture, the truth and their error in a row, with captions, as uint8."""
    # error = mean over channels of |srgb - srgb_truth|, in the colours of the map from 0 to 0.1
    difference = np.asarray(srgb_numbers(image)) - np.asarray(srgb_numbers(truth))
    errors = color_map(np.mean(np.abs(difference), axis=2) / ERROR_SCALE, ERROR_MAP)
    # Every pixel of a small picture fills a square of `zoom` pixels.
    zoom = -(-_LEAST_PIXELS // min(image.width, image.height, _LEAST_PIXELS))
    panels = [
        _panel(as_bytes(image), zoom, "rendered"),
        _panel(as_bytes(truth), zoom, "truth"),
        _panel(errors, zoom, "absolute error", scale=f"{ERROR_SCALE:g}+"),
    ]
    line = np.full((panels[0].shape[0], _LINE, 3), 128, np.uint8)
    first, *others = panels
    return np.concatenate([first, *(part for x in others for part in (line, x))], axis=1)


def _panel(pixels: np.ndarray, zoom: int, caption: str, *, scale: str | None = None) -> np.ndarray:
    """Puts a picture over its caption, and over a bar of the map's colours if it has a scale."""
    large = pixels.repeat(zoom, axis=0).repeat(zoom, axis=1)
    width, half = large.shape[1], large.shape[1] // 2
    strip = PillowImage.new("RGB", (width, _CAPTION), "white")
    draw = ImageDraw.Draw(strip)
    font = ImageFont.load_default(size=11)
    if scale is None:
        draw.text((half, _CAPTION // 2), caption, "black", font, anchor="mm")
    else:
        draw.text((2, _CAPTION // 2), f"{caption}   0", "black", font, anchor="lm")
        begin = round(draw.textlength(f"{caption}   0 ", font)) + 4
        end = width - round(draw.textlength(scale, font)) - 8
        bar = color_map(np.linspace(0, 1, end - begin), ERROR_MAP)[None].repeat(_CAPTION - 8, 0)
        strip.paste(PillowImage.fromarray(bar), (begin, 4))
        draw.text((width - 2, _CAPTION // 2), scale, "black", font, anchor="rm")
    return np.concatenate([large, np.asarray(strip)])
