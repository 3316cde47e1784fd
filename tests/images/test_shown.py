"""What a picture tells as pictures: conventions of colours, and the published suite by loops."""

import equinox as eqx
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

from scenegraph.images import as_bytes, depth_limits, Image, Linear, published_suite, visualise
from support.helpers import assert_close


RNG = np.random.default_rng(0)
TURBO = matplotlib.colormaps["turbo"]


def picture(**parts):
    arrays = {name: jnp.asarray(value, jnp.float32) for name, value in parts.items()}
    return Image(jnp.zeros((*arrays["alpha"].shape, 3)), **arrays)


def test_rgb_is_the_picture_itself():
    image = Image(RNG.uniform(size=(2, 3, 3)), space=Linear())
    assert visualise(image, "rgb") is image


def test_opacity_is_grey():
    shown = visualise(picture(alpha=[[0.0, 0.25, 1.0]]), "opacity")
    assert_close(shown.rgb[0], np.repeat([[0.0], [0.25], [1.0]], 3, axis=1))


@pytest.mark.parametrize("what, name", [("depth", "depth"), ("median-depth", "median_depth")])
def test_near_is_red_and_far_is_blue(what, name):
    image = picture(alpha=[[1.0] * 4], **{name: [[2.0, 3.0, 4.0, 9.0]]})
    shown = as_bytes(visualise(image, what, depths=(2.0, 4.0)))[0]
    expected = [TURBO(1.0), TURBO(0.5), TURBO(0.0), TURBO(0.0)]
    assert_close(shown, np.round(255 * np.array(expected)[:, :3]), 0, 1)
    red, blue = shown[0].astype(int), shown[2].astype(int)
    assert red[0] > red[2] and blue[2] > blue[0]


def test_what_is_not_there_is_white():
    image = picture(alpha=[[0.0, 0.5]], depth=[[1.0, 1.0]], normal=np.zeros((1, 2, 3)))
    for what, full in (("depth", TURBO(0.0)[:3]), ("normals", (0.5, 0.5, 0.5))):
        shown = visualise(image, what, depths=(0.0, 1.0)).rgb[0]
        assert_close(shown, [np.ones(3), 0.5 + 0.5 * np.array(full)], 0, 5e-3)


def test_normals_are_red_green_and_blue():
    normal = [[[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]]]
    shown = visualise(picture(alpha=np.ones((1, 4)), normal=normal), "normals").rgb[0]
    assert_close(shown, [[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1], [0, 0.5, 0.5]])


def test_albedo_is_in_the_space_of_the_picture():
    image = picture(alpha=[[1.0, 0.5]], albedo=[[[0.2, 0.4, 0.6]] * 2])
    shown = visualise(eqx.tree_at(lambda x: x.space, image, Linear()), "albedo")
    assert isinstance(shown.space, Linear)
    assert_close(shown.rgb[0], [[0.2, 0.4, 0.6], [0.6, 0.7, 0.8]])


def test_places_repeat_with_every_unit():
    image = picture(alpha=[[1.0]], uv=[[[1.25, -0.25]]], position=[[[0.5, 3.75, -1.0]]])
    assert_close(visualise(image, "uv").rgb[0, 0], [0.25, 0.75, 0.0])
    assert_close(visualise(image, "positions").rgb[0, 0], [0.5, 0.75, 0.0])


def test_surfaces_have_colours_of_their_own():
    image = picture(alpha=np.ones((1, 13)))
    numbers = jnp.arange(-1, 12)[None]
    image = eqx.tree_at(lambda x: x.surface, image, numbers, is_leaf=lambda x: x is None)
    shown = np.asarray(visualise(image, "surfaces").rgb[0])
    apart = np.linalg.norm(shown[:, None] - shown, axis=-1) + np.eye(13)
    assert np.all(shown[0] == 1) and np.min(apart) > 0.05 and np.all(shown <= 1)


@pytest.mark.parametrize(
    "what", ["depth", "median-depth", "opacity", "normals", "albedo", "uv", "positions", "surfaces"]
)
def test_what_the_picture_does_not_have(what):
    with pytest.raises(ValueError, match=what):
        visualise(Image(np.zeros((2, 2, 3))), what)


def test_depth_limits_leave_out_what_is_transparent_and_rare():
    """Of a thousand and more opaque depths from 2 to 3, a few outliers; and much empty far away."""
    depth = np.concatenate([np.linspace(2, 3, 2000), [0.01] * 5, [50.0] * 5, np.full(990, 100.0)])
    alpha = np.concatenate([np.ones(2010), np.full(990, 0.4)])
    parts = zip(alpha.reshape(3, 10, 100), depth.reshape(3, 10, 100), strict=True)
    images = [picture(alpha=a, depth=d) for a, d in parts]
    near, far = depth_limits(images)
    assert 2.0 < near < 2.02 and 2.98 < far < 3.0
    # Of one frame alone the limits would be others.
    assert depth_limits(images[:1])[1] < 2.6


def test_depth_limits_of_fog():
    assert depth_limits([picture(alpha=[[0.1, 0.1]], depth=[[1.0, 2.0]])])[1] > 1.9


# --- The published suite


def naive_suite(depth, alpha):
    """Pixel by pixel, as the published code defines it; all pixels hold something."""
    eps = np.finfo(np.float32).eps
    height, width = depth.shape
    curve = lambda x: -np.log(x + eps)
    near, far = curve(depth.min() - eps), curve(depth.max() + eps)
    rows, columns = np.mgrid[:height, :width]
    scale = np.sqrt((columns.var() + rows.var()) / 2 / depth.var())
    blur, edge = [0.25, 0.5, 0.25], [-0.5, 0.0, 0.5]

    def at(row, column):
        inside = 0 <= row < height and 0 <= column < width
        return scale * depth[row, column] if inside else 0.0

    out = {name: np.zeros((height, width, 3)) for name in ("depth", "depth_mod", "depth_normals")}
    for row in range(height):
        for column in range(width):
            value = curve(depth[row, column])
            share = np.clip((value - min(near, far)) / abs(far - near), 0, 1)
            hue = (value % 0.1) / 0.1
            dx = dy = 0.0
            for i in range(3):
                for j in range(3):  # a convolution turns its kernel round
                    z = at(row + 1 - i, column + 1 - j)
                    dx += blur[i] * edge[j] * z
                    dy += edge[i] * blur[j] * z
            normal = np.array([dx, dy, 1]) / np.sqrt(1 + dx**2 + dy**2)
            colors = {
                "depth": np.array(TURBO(share)[:3]),
                "depth_mod": np.sin(np.pi * (np.array([3, 5, 7]) / 6 - hue)) ** 2,
                "depth_normals": (normal + 1) / 2,
            }
            for name, rgb in colors.items():
                a = alpha[row, column]
                out[name][row, column] = a * rgb + 1 - a
    return out


def test_published_suite_against_loops():
    depth, alpha = RNG.uniform(2, 6, (7, 9)), RNG.uniform(0.2, 1, (7, 9))
    suite, expected = published_suite(depth, alpha), naive_suite(depth, alpha)
    assert list(suite) == ["depth", "depth_mod", "depth_normals"]
    # Colours of the map are rounded to bytes.
    assert_close(suite["depth"], expected["depth"], 0, 0.5 / 255 + 1e-6)
    assert_close(suite["depth_mod"], expected["depth_mod"], 0, 1e-6)
    assert_close(suite["depth_normals"], expected["depth_normals"], 0, 1e-6)


def test_empty_pixels_do_not_stretch_the_colours():
    depth, alpha = RNG.uniform(2, 6, (5, 6)), np.ones((5, 6))
    alone = published_suite(depth, alpha)["depth"]
    empty = np.pad(depth, [(0, 1), (0, 0)], constant_values=0.01)
    suite = published_suite(empty, np.pad(alpha, [(0, 1), (0, 0)]))
    assert_close(suite["depth"][:5], alone, 0, 1e-9)
    assert_close(suite["depth"][5], np.ones((6, 3)))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_flat_depth(alpha):
    for name, rgb in published_suite(np.full((3, 4), 2.0), np.full((3, 4), alpha)).items():
        assert np.all(np.isfinite(rgb)) and (alpha or np.all(rgb == 1)), name
