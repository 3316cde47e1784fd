"""Pictures on surfaces against lookups and averages in plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import Image, Linear
from scenegraph.shaders._image_texture import halved
from support.helpers import assert_close, assert_gradients
from support.shading import color_at, colors, footprint_mean


RNG = np.random.default_rng(0)
TEXELS = RNG.uniform(size=(5, 7, 3))
SIZE, CORNER = np.array([1.4, 0.9]), np.array([-0.2, 0.3])
PLACES = CORNER + SIZE * RNG.uniform(-0.4, 1.4, (40, 2))
STILL = np.zeros((40, 2, 2))


def at_corner(texels, **options):
    return sg.ImageTexture(texels, corner=[0.0, 0.0], **options)


def lookup(texels, place, repeat):
    """Bilinear, texel by texel; row 0 is the top."""
    height, width, _ = texels.shape
    right, up = (place - CORNER) / SIZE
    x, y = right * width - 0.5, (1 - up) * height - 0.5
    column, row = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(3)
    for i in (row, row + 1):
        for j in (column, column + 1):
            weight = (1 - abs(y - i)) * (1 - abs(x - j))
            if repeat:
                total += weight * texels[i % height, j % width]
            else:
                total += weight * texels[min(max(i, 0), height - 1), min(max(j, 0), width - 1)]
    return total


# --- Where the pixel is small


@pytest.mark.parametrize("repeat", [False, True])
def test_a_small_pixel_sees_bilinear_interpolation(repeat):
    shader = sg.ImageTexture(TEXELS, SIZE, CORNER, repeat=repeat)
    expected = np.stack([lookup(TEXELS, place, repeat) for place in PLACES])
    assert_close(colors(shader, PLACES, STILL), expected, 0, 1e-5)


def test_the_first_row_is_the_top():
    corners = np.array([[0.0, 0.0], [0.9999, 0.0], [0.0, 0.9999], [0.9999, 0.9999]])
    seen = colors(at_corner(TEXELS), corners, STILL[:4])
    assert_close(seen, TEXELS[[-1, -1, 0, 0], [0, -1, 0, -1]], 0, 1e-3)


def test_far_away_places_are_finite():
    shader = at_corner(TEXELS, repeat=True)
    places = np.array([[1e9, -1e12], [1e30, 1e30]])
    assert np.all(np.isfinite(colors(shader, places, STILL[:2])))
    assert_close(colors(at_corner(TEXELS), places[:1], STILL[:1])[0], TEXELS[-1, -1], 1e-6)


def test_an_image_gives_its_light():
    linear, srgb = Image(TEXELS, space=Linear()), Image(TEXELS)
    assert_close(sg.ImageTexture(linear).texels, TEXELS, 1e-6)
    assert_close(sg.ImageTexture(srgb).texels, srgb.space.to_linear(srgb.rgb), 1e-6)


# --- Where it covers many texels


def overlaps(length):
    """The mean over every new texel, as a matrix: how much of it each old one covers."""
    new, edges = length // 2, np.arange(length + 1) / length
    ends = np.arange(new + 1) / new
    common = np.minimum(edges[1:], ends[1:, None]) - np.maximum(edges[:-1], ends[:-1, None])
    return np.maximum(common, 0) * new


def test_the_pyramid_averages_areas():
    """Of odd sizes too; so all levels have the same mean."""
    levels = halved(jnp.asarray(TEXELS))
    assert [level.shape[:2] for level in levels] == [(5, 7), (2, 3), (1, 1)]
    expected = np.einsum("ia,jb,abc->ijc", overlaps(5), overlaps(7), TEXELS)
    assert_close(levels[1], expected, 1e-6)
    assert_close(levels[2][0, 0], np.mean(TEXELS, axis=(0, 1)), 1e-6)


def test_a_pixel_over_a_block_sees_its_mean():
    """Two by two, four by four and all texels of a picture of eight."""
    texels = RNG.uniform(size=(8, 8, 3))
    shader = at_corner(texels)
    for count in (1, 2, 4, 8):
        middle = np.array([[count / 16, 1 - count / 16]])
        seen = colors(shader, middle, np.array([[[count / 8, 0.0], [0.0, count / 8]]]))
        assert_close(seen[0], np.mean(texels[:count, :count], axis=(0, 1)), 0, 1e-5)


def test_a_pixel_over_many_texels_sees_about_their_mean():
    """A pyramid's average is wider than the pixel, so it is close in the mean alone."""
    texels = RNG.uniform(size=(48, 37, 3))
    places, angles = RNG.uniform(0.2, 0.8, (16, 2)), RNG.uniform(0, 7, 16)
    turn = np.stack([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    slopes = 0.12 * np.moveaxis(turn, -1, 0)
    shader = at_corner(texels)

    def nearest(p):
        column = np.clip(p[:, 0] * 37, 0, 36).astype(int)
        return texels[np.clip((1 - p[:, 1]) * 48, 0, 47).astype(int), column]

    means = np.stack([footprint_mean(nearest, *x, 60) for x in zip(places, slopes, strict=True)])
    filtered = np.sqrt(np.mean((colors(shader, places, slopes) - means) ** 2))
    unfiltered = np.sqrt(np.mean((colors(shader, places, 0 * slopes) - means) ** 2))
    assert filtered < 0.25 * unfiltered


def test_no_jump_from_level_to_level():
    widths = np.linspace(0.02, 2.0, 2000)
    slopes = widths[:, None, None] * np.array([[1.0, 0.3], [-0.2, 0.8]])
    seen = colors(at_corner(TEXELS), np.broadcast_to([0.4, 0.3], (2000, 2)), slopes)
    assert np.max(np.abs(np.diff(seen, axis=0))) < 0.01


def test_rays_share_one_pyramid():
    shader = at_corner(np.zeros((64, 64, 3)))
    look = jax.vmap(lambda place: color_at(shader, place, jnp.eye(2)))
    program = jax.jit(look).lower(jnp.zeros((1000, 2))).as_text()
    assert "tensor<32x32x3x" in program
    assert "1000x32" not in program and "1000x64" not in program


# --- Gradients


@pytest.mark.parametrize("width", [0.0, 0.3, 0.9])
def test_gradients_to_texels_and_places(x64, width):
    def look(texels, size, corner, place, slopes):
        return color_at(sg.ImageTexture(texels, size, corner, True), place, slopes)

    slopes = width * np.array([[1.0, 0.3], [-0.2, 0.8]])
    place = np.array([0.41, 0.73])
    assert_gradients(look, *map(jnp.asarray, (TEXELS, SIZE, CORNER, place, slopes)))


def test_what_is_refused():
    with pytest.raises(ValueError, match="ImageTexture.size` must be positive"):
        sg.ImageTexture(TEXELS, [1.0, 0.0])
    with pytest.raises(ValueError, match="ImageTexture.texels` must have at least one texel"):
        sg.ImageTexture(np.zeros((0, 4, 3)))
    with pytest.raises(TypeError, match="ImageTexture.texels"):
        sg.ImageTexture(TEXELS[..., :2])
