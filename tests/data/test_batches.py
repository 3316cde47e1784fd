"""Random batches: what is in them, and that they depend on nothing but seed and step."""

import collections

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import (
    AllImages,
    IgnoreAlpha,
    Patches,
    Random,
    RayBatches,
    SingleImage,
    Solid,
)
from scenegraph.pixels import over_background, PixelList, pixels_through, stack_cameras
from support.blender_folder import write_ball
from support.helpers import assert_close


KEY = jax.random.key(0)
BACKDROPS = [Solid(), Solid([0.0, 0.0, 0.0]), Random(), IgnoreAlpha()]


def many_views(backdrop=Solid(), last=(5, 1)) -> sg.Views:
    """Pictures of 4x3, 2x2 and 5x1 pixels whose bytes say where they are in the flat list."""
    sizes = np.array([(4, 3), (2, 2), last])
    count = int(sizes.prod(axis=1).sum())
    pixels = np.arange(4 * count, dtype=np.uint8).reshape(count, 4)
    camera = sg.PerspectiveCamera.look_at([0.0, -3.0, 1.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 4, 3)
    return sg.Views(
        jnp.asarray(pixels),
        stack_cameras(
            [eqx.tree_at(lambda c: c.near, camera, jnp.array(n)) for n in (1.0, 2.0, 3.0)]
        ),
        jnp.asarray(sizes[:, 0]),
        jnp.asarray(sizes[:, 1]),
        jnp.array([1.0, 4.0, 16.0]),
        backdrop,
    )


def same(first, second) -> bool:
    return bool(eqx.tree_equal(first, second))


# --- Where a pixel of the flat list is


@pytest.mark.slow
def test_pictures_of_different_sizes_share_one_list():
    views = many_views()
    frames = np.repeat([0, 1, 2], [12, 4, 5])
    np.testing.assert_array_equal(views.starts(), [0, 12, 16])
    np.testing.assert_array_equal(views.frame_of(jnp.arange(21)), frames)
    np.testing.assert_array_equal(views.rays(jnp.arange(21)).near, 1.0 + frames)
    assert views.image(2).rgb.shape == (1, 5, 3)


@pytest.mark.slow
def test_rays_go_through_the_centres_of_their_pixels():
    views = many_views()
    rays = views.rays(jnp.array([0, 11, 12 + 2, 16 + 4]))
    pixels = [[0.5, 0.5], [3.5, 2.5], [0.5, 1.5], [4.5, 0.5]]
    for ray_frame, (index, pixel) in zip([0, 0, 1, 2], enumerate(pixels), strict=True):
        expected = views.camera(ray_frame).ray(jnp.array(pixel))
        assert_close(rays.direction[index], expected.direction, 1e-6)


# --- Backdrops


def batch_and_pixels(backdrop):
    """A batch, and the RGBA of its pixels (found again by their red byte)."""
    views = many_views(backdrop)
    batch = batch_of(RayBatches(views, 64), 0, 0)
    seen = batch_of(RayBatches(many_views(IgnoreAlpha()), 64), 0, 0)
    index = np.round(np.asarray(seen.rgb)[:, 0] * 255 / 4).astype(int)
    return jax.tree.map(np.asarray, (batch, eqx.filter_jit(views.rgba)(index)))


@eqx.filter_jit
def batch_of(batches, seed, step):
    return batches.batch(seed, step)


def test_random_backdrop_is_behind_the_pixels_of_its_batch():
    batch, rgba = batch_and_pixels(Random())
    alpha = rgba[:, 3:]
    assert_close(batch.rgb, rgba[:, :3] * alpha + batch.background * (1 - alpha), 0, 1e-6)
    assert len(np.unique(batch.background)) == batch.background.size
    assert 0 <= batch.background.min() < 0.1 < 0.9 < batch.background.max() < 1


@pytest.mark.parametrize("color", [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.2, 0.4, 0.9)])
def test_solid_backdrop_is_the_scene_s_own(color):
    batch, rgba = batch_and_pixels(Solid(color))
    assert batch.background is None
    alpha = rgba[:, 3:]
    assert_close(batch.rgb, rgba[:, :3] * alpha + np.array(color) * (1 - alpha), 0, 1e-6)


def test_alpha_may_be_ignored():
    batch, rgba = batch_and_pixels(IgnoreAlpha())
    assert batch.background is None
    np.testing.assert_array_equal(batch.rgb, rgba[:, :3])


def test_pictures_without_opacity_have_nothing_behind_them():
    rgb = jax.random.uniform(KEY, (5, 3))
    np.testing.assert_array_equal(over_background(rgb, jnp.zeros(3)), rgb)


# --- Pure functions of seed and step


@pytest.mark.parametrize("choice", [AllImages(), SingleImage(), Patches(2)])
@pytest.mark.parametrize("backdrop", [Solid(), Random()])
def test_batch_is_a_pure_function(choice, backdrop):
    batches = RayBatches(many_views(backdrop), 32, choice)
    first, again, later, other = (
        batch_of(batches, *map(jnp.asarray, at)) for at in ((3, 7), (3, 7), (3, 8), (4, 7))
    )
    assert same(first, again)
    assert not same(first.rgb, later.rgb)
    assert not same(first.rgb, other.rgb)


@pytest.mark.slow
def test_compiled_and_eager_batches_are_the_same():
    batches = RayBatches(many_views(Random()), 32, Patches(2))
    assert_close(batch_of(batches, 3, 7).rgb, batches.batch(3, 7).rgb, 1e-6)


def test_rays_colours_and_weights_belong_together():
    batch, rgba = batch_and_pixels(Solid())
    index = np.round(np.asarray(rgba[:, 0]) * 255 / 4).astype(int)
    frame = np.searchsorted([12, 16], index, side="right")
    np.testing.assert_array_equal(batch.rays.near, 1.0 + frame)
    np.testing.assert_array_equal(batch.lossmult, 4.0**frame)
    assert same(batch.rays, eqx.filter_jit(many_views().rays)(jnp.asarray(index)))


# --- Which pixels


def test_all_pixels_are_equally_likely():
    drawn = AllImages()(many_views(), 21_000, KEY)
    counts = np.bincount(drawn, minlength=21)
    assert len(counts) == 21 and np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))


def test_single_image_draws_from_one_picture_a_batch():
    views, choice = many_views(), SingleImage()
    draw = jax.jit(lambda key: choice(views, 40, key))
    pictures = collections.Counter()
    for key in jax.random.split(KEY, 60):
        drawn = draw(key)
        frame = set(np.asarray(views.frame_of(drawn)).tolist())
        assert len(frame) == 1
        pictures.update(frame)
        # Every pixel of the two small pictures turns up among forty draws, or nearly so.
        assert len(np.unique(drawn)) >= 3
    assert set(pictures) == {0, 1, 2} and min(pictures.values()) > 8


def test_patches_are_squares_of_one_picture():
    views, side = many_views(last=(5, 4)), 2
    found = RayBatches(views, size=200 * side**2, choice=Patches(side)).indices(0, 0)
    frames, places = (np.asarray(x) for x in views.locate(found))
    frames, places = frames.reshape(200, -1), places.reshape(200, side, side, 2)
    assert np.all(frames == frames[:, :1])
    for row in range(side):
        for column in range(side):
            assert np.all(places[:, row, column] - places[:, 0, 0] == [column, row])
    assert len(np.unique(frames)) == views.frames
    # All corners that there are, and none beyond the border.
    sizes = np.stack([views.widths, views.heights], axis=1)[frames[:, 0]]
    assert np.all(places >= 0) and np.all(places[:, -1, -1] < sizes)
    assert np.any(places[:, 0, 0] == 0) and np.any(places[:, -1, -1] == sizes - 1)


def test_patches_wider_than_a_picture_repeat_its_border():
    found = Patches(50)(many_views(), 2500, KEY)
    frame, place = many_views().locate(found)
    picture = np.asarray(place).reshape(50, 50, 2)
    height, width = int(many_views().heights[frame[0]]), int(many_views().widths[frame[0]])
    assert np.array_equal(picture[0, :, 0], np.minimum(np.arange(50), width - 1))
    assert np.array_equal(picture[:, 0, 1], np.minimum(np.arange(50), height - 1))


def test_listed_draws_all_of_its_pixels_and_no_others():
    drawn = PixelList(jnp.array([2, 3, 17]))(many_views(), 300, KEY)
    counts = collections.Counter(np.asarray(drawn).tolist())
    assert set(counts) == {2, 3, 17} and min(counts.values()) > 70


@pytest.mark.slow
def test_pixels_through_a_box_are_those_whose_rays_meet_it(tmp_path):
    views = sg.load_blender(write_ball(tmp_path, {"train": 3}, radius=0.5))
    lower, upper = np.array([-0.5, -0.5, -0.5]), np.array([0.5, 0.5, 0.5])
    listed = np.asarray(pixels_through(views, lower, upper).indices)
    rays = views.rays(jnp.arange(views.pixels.shape[0]))
    t = np.linspace(2, 6, 2000)[:, None, None]
    points = np.asarray(rays.origin) + t * np.asarray(rays.direction)
    meets = np.flatnonzero(np.all((points > lower) & (points < upper), axis=-1).any(axis=0))
    # The brute force walks in steps and may step over a corner; that is all the difference.
    assert set(meets) <= set(listed) and len(listed) - len(meets) <= 2
    visible = np.flatnonzero(views.pixels[:, 3])
    assert set(visible) <= set(listed) and len(listed) < 0.5 * len(views.pixels)


def test_box_that_no_ray_meets_leaves_all_pixels(tmp_path):
    views = sg.load_blender(write_ball(tmp_path, {"train": 2}))
    far_away = np.array([100.0, 100.0, 100.0])
    assert pixels_through(views, far_away, far_away + 1).indices.shape[0] == len(views.pixels)


def test_views_of_one_picture_need_its_size():
    camera = many_views().camera(0)
    with pytest.raises(ValueError, match="4x3 pixels; the image has 3x2"):
        sg.views(camera, sg.Image(jnp.zeros((2, 3, 3))))
