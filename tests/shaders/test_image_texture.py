"""Pictures on surfaces against lookups and averages in plain numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import Image, Linear
from scenegraph.shaders._pyramid import along_axis, halved
from support.helpers import assert_close, assert_gradients
from support.shading import color_at, colors, footprint_mean


RNG = np.random.default_rng(0)
TEXELS = RNG.uniform(size=(5, 7, 3))
SIZE, CORNER = np.array([1.4, 0.9]), np.array([-0.2, 0.3])
PLACES = CORNER + SIZE * RNG.uniform(-0.4, 1.4, (40, 2))
STILL = np.zeros((40, 2, 2))


def at_corner(texels, **options):
    return sg.ImageTexture(texels, corner=[0.0, 0.0], **options)


def index(i, count, repeat, mirror):
    """The texel that stands for one beyond the border, step by step."""
    if not repeat:
        return min(max(i, 0), count - 1)
    tile, within = divmod(i, count)
    return count - 1 - within if mirror and tile % 2 else within


def lookup(texels, place, repeat, mirror=(False, False)):
    """Bilinear, texel by texel; row 0 is the top."""
    height, width, _ = texels.shape
    right, up = (place - CORNER) / SIZE
    x, y = right * width - 0.5, (1 - up) * height - 0.5
    column, row = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(3)
    for i in (row, row + 1):
        for j in (column, column + 1):
            weight = (1 - abs(y - i)) * (1 - abs(x - j))
            at = index(i, height, repeat[1], mirror[1]), index(j, width, repeat[0], mirror[0])
            total += weight * texels[at]
    return total


# --- Where the pixel is small


@pytest.mark.parametrize("repeat", [False, True])
def test_a_small_pixel_sees_bilinear_interpolation(repeat):
    shader = sg.ImageTexture(TEXELS, SIZE, CORNER, repeat=repeat)
    expected = np.stack([lookup(TEXELS, place, (repeat, repeat)) for place in PLACES])
    assert_close(colors(shader, PLACES, STILL), expected, 0, 1e-5)


@pytest.mark.parametrize(
    ("repeat", "mirror"),
    [
        ((True, False), False),
        ((False, True), (False, True)),
        (True, True),
        (True, (True, False)),
    ],
)
def test_each_coordinate_has_its_own_border(repeat, mirror):
    shader = sg.ImageTexture(TEXELS, SIZE, CORNER, repeat=repeat, mirror=mirror)
    places = CORNER + SIZE * RNG.uniform(-3.4, 4.4, (40, 2))
    pairs = [x if isinstance(x, tuple) else (x, x) for x in (repeat, mirror)]
    expected = np.stack([lookup(TEXELS, place, *pairs) for place in places])
    assert_close(colors(shader, places, STILL), expected, 0, 1e-4)


def test_one_channel_is_grey():
    shader = sg.ImageTexture(TEXELS[..., :1], SIZE, CORNER)
    every = sg.ImageTexture(np.repeat(TEXELS[..., :1], 3, axis=2), SIZE, CORNER)
    assert_close(colors(shader, PLACES, STILL), colors(every, PLACES, STILL), 0, 1e-6)


def test_the_numbers_of_a_file(tmp_path):
    numbers = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    Image(numbers).save(tmp_path / "a.png")
    loaded = sg.ImageTexture.load(tmp_path / "a.png", linear=True)
    assert_close(loaded.texels, numbers / 255, 1e-6)


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
    shader = at_corner(texels, probes=1)
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


STRIPES = np.tile(np.arange(64)[None, :, None] % 2 * np.ones(3), (64, 1, 1))


def test_probes_keep_what_is_across_the_footprint():
    """A long footprint along stripes of one texel sees them; a square as long sees grey."""
    places = np.array([[32.5, 32.5], [33.5, 32.5]]) / 64
    along = np.tile(np.array([[0.25, 0], [0, 8]]) / 64, (2, 1, 1))
    sharp = colors(at_corner(STRIPES, probes=8), places, along)
    assert_close(sharp[:, 0], [0, 1], 0, 1e-5)
    assert_close(colors(at_corner(STRIPES, probes=1), places, along)[:, 0], [0.5, 0.5], 0, 1e-2)


@pytest.mark.parametrize("probes", [2, 4, 8])
def test_probes_have_the_second_moment_of_the_footprint(probes):
    """The singular values of a footprint are the sides of a rectangle with its moments."""
    footprints = RNG.normal(size=(30, 2, 2)) * RNG.uniform(1, 30, (30, 1, 2))
    steps, covered = jax.vmap(lambda x: along_axis(x, probes))(jnp.asarray(footprints, jnp.float32))
    for footprint, step, texels in zip(footprints, steps, covered, strict=True):
        axes, (long, short), _ = np.linalg.svd(footprint)
        side = max(short, long / probes)
        assert float(texels) == pytest.approx(1 + max(side**2 - 1, 0) / 3, rel=1e-3)
        places = np.arange(probes)[:, None] * np.asarray(step, float)
        along = places @ axes[:, 0]
        assert np.var(along) + side**2 / 12 == pytest.approx(long**2 / 12, rel=1e-3)
        assert_close(places @ axes[:, 1], np.zeros(probes), absolute=2e-2)


def test_a_square_footprint_has_one_place():
    step, covered = along_axis(3 * jnp.eye(2), 4)
    assert_close(step, [0, 0], absolute=1e-6)
    assert float(covered) == pytest.approx(1 + 8 / 3)


def grazing(shader, samples: int) -> np.ndarray:
    """A floor seen at a slant of some ten degrees."""
    floor = sg.Surface(sg.Rectangle(size=[40.0, 40.0]), shader)
    eye = [0.0, -14.0, 2.4]
    camera = sg.PerspectiveCamera.look_at(eye, [0.0, 0.0, 0.0], [0.0, 0, 1], 0.25, 32, 24)
    scene = sg.Scene(sg.Group(floor=floor))
    return np.asarray(sg.render(scene, camera, samples_per_pixel=samples).rgb)


@pytest.mark.slow
def test_a_floor_at_a_slant():
    """Against 256 samples a pixel: four probes have at most half of the plain pyramid's error."""
    texels = np.random.default_rng(5).uniform(size=(64, 64, 3)).astype(np.float32)
    make = lambda probes: sg.ImageTexture(texels, [8.0, 8.0], repeat=True, probes=probes)
    truth = grazing(make(1), 256)
    error = {n: np.sqrt(np.mean((grazing(make(n), 1) - truth) ** 2)) for n in (1, 4)}
    assert error[4] < error[1] / 2, error


# --- Gradients


@pytest.mark.parametrize(("width", "mirror"), [(0.0, True), (0.3, False), (0.9, False)])
def test_gradients_to_texels_and_places(x64, width, mirror):
    def look(texels, size, corner, place, slopes):
        return color_at(sg.ImageTexture(texels, size, corner, True, mirror=mirror), place, slopes)

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
    with pytest.raises(ValueError, match="ImageTexture.probes` must be at least 1"):
        sg.ImageTexture(TEXELS, probes=0)


@pytest.mark.parametrize(("size", "stacks"), [(4, 1), (64, 2)])
def test_large_textures_have_a_stack_each(size, stacks):
    """In a stack, every ray gathers the texels of its surface."""
    cards = {
        name: sg.Surface(sg.Rectangle(), at_corner(np.zeros((size, size, 3)))) for name in "ab"
    }
    flat = sg.flat.flatten(sg.Scene(sg.Group(**cards)))
    assert len(flat.shaders) == stacks and len(flat.occluders) == 1
