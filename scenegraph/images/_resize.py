import numpy as np


def shrink(rgba: np.ndarray, factor: int, *, straight_alpha: bool = False) -> np.ndarray:
    """Averages blocks of `factor` x `factor` pixels.

    Colours are weighted by their opacity, so that what is invisible does not bleed in. A rest
    that does not fill a block, at the right or the bottom, is cut off.

    **Arguments:**

    - `rgba`: the pixels, `height width channels`, floating; the fourth channel, if any, is opacity
      and the colours are not multiplied by it.
    - `factor`: the side of the blocks, at least 1 pixel.
    - `straight_alpha`: if true, colours are averaged without weights, as the published mip-NeRF
      code does. Keyword only argument.

    **Returns:**

    A float32 array of the smaller size, colours not multiplied by opacity.

    **Errors:**

    `ValueError` for a factor that leaves no pixel.
    """
    height, width, channels = rgba.shape
    rows, columns = height // factor if factor > 0 else 0, width // factor if factor > 0 else 0
    if rows == 0 or columns == 0:
        raise ValueError(f"cannot shrink a picture of {width}x{height} pixels by {factor}.")
    blocks = rgba[: rows * factor, : columns * factor].astype(np.float32)
    blocks = blocks.reshape(rows, factor, columns, factor, channels)
    if straight_alpha or channels < 4:
        return blocks.mean(axis=(1, 3), dtype=np.float32)
    # color = mean(alpha color) / mean(alpha)
    alpha = blocks[..., 3:]
    opacity = alpha.mean(axis=(1, 3))
    color = (blocks[..., :3] * alpha).mean(axis=(1, 3)) / np.maximum(opacity, 1e-12)
    return np.concatenate([color, opacity], axis=-1)
