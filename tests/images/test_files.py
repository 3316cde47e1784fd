"""Pictures saved and loaded, in all formats, beside numpy and Pillow."""

import io

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image as PillowImage

import scenegraph as sg
from scenegraph.images import Linear, linear_to_srgb, SRGB
from scenegraph.io import FileError
from support.helpers import assert_close


LIGHT = np.random.default_rng(0).uniform(0, 1.5, (9, 12, 3)).astype(np.float32)
LIT = sg.Image(LIGHT, depth=jnp.full((9, 12), 2.5), space=Linear())


@pytest.mark.parametrize("ending", ["png", "tiff", "bmp"])
def test_ordinary_files_hold_srgb_bytes_encoded_once(tmp_path, ending):
    LIT.save(tmp_path / f"a.{ending}")
    expected = np.round(255 * np.clip(np.asarray(linear_to_srgb(jnp.asarray(LIGHT))), 0, 1))
    np.testing.assert_array_equal(np.asarray(PillowImage.open(tmp_path / f"a.{ending}")), expected)
    loaded = sg.Image.load(tmp_path / f"a.{ending}")
    assert type(loaded.space) is SRGB and loaded.alpha is None
    assert_close(loaded.rgb, expected / 255, 0, 1e-6)
    loaded.save(tmp_path / "again.png")
    again = np.asarray(PillowImage.open(tmp_path / "again.png"))
    np.testing.assert_array_equal(again, expected)


def test_pixels_that_are_nan_are_counted_and_black(tmp_path):
    with pytest.warns(UserWarning, match="a.png: 2 of 108 pixels are NaN; 8 bits show them black"):
        sg.Image(jnp.asarray(LIGHT).at[0, :2].set(jnp.nan)).save(tmp_path / "a.png")
    shown = np.asarray(PillowImage.open(tmp_path / "a.png"))
    assert not np.any(shown[0, :2]) and np.any(shown[0, 2])


def test_a_jpeg_is_near(tmp_path):
    smooth = sg.Image(np.linspace(0, 1, 64 * 3).reshape(8, 8, 3), space=SRGB())
    smooth.save(str(tmp_path / "a.jpg"))
    assert_close(sg.Image.load(tmp_path / "a.jpg").rgb, smooth.rgb, 0, 0.05)


def test_exr_holds_linear_light_and_depth(tmp_path):
    exr = pytest.importorskip("OpenEXR", reason="needs OpenEXR: pip install scenegraph[exr]")
    LIT.save(tmp_path / "a.exr")
    loaded = sg.Image.load(tmp_path / "a.exr")
    assert isinstance(loaded.space, Linear)
    np.testing.assert_array_equal(loaded.rgb, LIGHT)
    with exr.File(str(tmp_path / "a.exr"), separate_channels=True) as file:
        np.testing.assert_array_equal(file.channels()["Z"].pixels, 2.5)


@pytest.mark.parametrize("width", [5, 8, 12, 300])
def test_hdr_holds_linear_light_to_one_part_in_128(tmp_path, width):
    light = np.exp(np.random.default_rng(1).normal(0, 4, (3, width, 3)))
    light[0, 0] = 0
    sg.Image(light, space=Linear()).save(tmp_path / "a.hdr")
    loaded = sg.Image.load(tmp_path / "a.hdr")
    assert isinstance(loaded.space, Linear)
    # Mantissas have 8 bits of the brightest channel's.
    assert np.all(np.abs(loaded.rgb - light) <= light.max(-1, keepdims=True) / 128)


def test_hdr_with_runs_and_exposure(tmp_path):
    head = b"#?RADIANCE\nEXPOSURE=2\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 8\n"
    runs = bytes([2, 2, 0, 8]) + bytes([136, 128]) + bytes([8, *range(8)]) * 2 + bytes([136, 129])
    (tmp_path / "a.hdr").write_bytes(head + runs)
    loaded = np.asarray(sg.Image.load(tmp_path / "a.hdr").rgb)[0]
    # 128 / 256 * 2^(129 - 128) / 2, and i / 256 * 2 / 2
    np.testing.assert_allclose(loaded[:, 0], 0.5)
    np.testing.assert_allclose(loaded[:, 1], np.arange(8) / 256)
    for bad in (b"", head, head + runs[:-3], head.replace(b"rgbe", b"xyze") + runs, runs):
        (tmp_path / "bad.hdr").write_bytes(bad)
        with pytest.raises(FileError, match="bad.hdr"):
            sg.Image.load(tmp_path / "bad.hdr")


def test_what_is_not_opaque_lies_over_a_colour(tmp_path):
    rgba = np.random.default_rng(2).integers(0, 256, (4, 5, 4), np.uint8)
    PillowImage.fromarray(rgba).save(tmp_path / "a.png")
    straight, alpha = rgba[..., :3] / 255, rgba[..., 3:] / 255
    over_black = sg.Image.load(tmp_path / "a.png")
    assert_close(over_black.rgb, straight * alpha, 0, 1e-6)
    assert_close(over_black.alpha, alpha[..., 0], 0, 1e-6)
    over_white = sg.Image.load(tmp_path / "a.png", background=[1, 1, 1])
    assert_close(over_white.rgb, straight * alpha + 1 - alpha, 0, 1e-6)


def test_files_that_are_refused(tmp_path):
    with pytest.raises(FileError, match="must end in"):
        LIT.save(tmp_path / "a.xyz")
    for name in ("none.png", "none.hdr"):
        with pytest.raises(FileError, match="no picture"):
            sg.Image.load(tmp_path / name)


def test_textures_load_as_linear_light(tmp_path):
    LIT.save(tmp_path / "a.png")
    texture = sg.ImageTexture.load(tmp_path / "a.png", size=[2.0, 1.0])
    assert_close(texture.texels, np.clip(LIGHT, 0, 1), 0, 0.005)
    assert_close(texture.size, [2, 1], 0)


def test_notebooks_show_pictures():
    shown = PillowImage.open(io.BytesIO(LIT._repr_png_()))
    np.testing.assert_array_equal(np.asarray(shown), sg.images.as_bytes(LIT))


def test_a_card_shows_the_whole_picture():
    texels = np.random.default_rng(3).uniform(0.1, 0.9, (6, 8, 3))
    card = sg.Surface(sg.Rectangle(size=[4, 3]), sg.ImageTexture(texels, size=[4, 3]))
    camera = sg.OrthographicCamera.look_at([0, 0, 1], [0, 0, 0], [0, 1, 0], 4.0, 8, 6)
    seen = sg.render(sg.Scene(sg.Group(card=card)), camera).rgb
    assert_close(seen, texels, 0, 1e-4)
    small = sg.OrthographicCamera.look_at([0, 0, 1], [0, 0, 0], [0, 1, 0], 1.0, 6, 6)
    card = sg.Surface(sg.Rectangle(), sg.ImageTexture(texels[:, :6]))
    assert_close(sg.render(sg.Scene(sg.Group(card=card)), small).rgb, texels[:, :6], 0, 1e-4)
