"""Pixels that are the mean of smaller cones."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import scale_resolution
from scenegraph.fields import GaussianBlob
from scenegraph.flat import flatten
from scenegraph.numerics import safe_normalise
from scenegraph.rays import widen
from scenegraph.rendering import integrate
from scenegraph.scene import named_leaves
from support.helpers import assert_close


EYE, TARGET, UP = [0.5, -3.0, 1.5], [0.0, 0.0, 0.2], [0.1, 0.0, 1.0]
POSE = sg.Pose.look_at(EYE, TARGET, UP)
WIDTH, HEIGHT = 7, 5
EVERY = ("rgb", "alpha", "depth", "normal", "median_depth")


def board():
    """A ball before a checkerboard that ends in the picture; nothing is lit."""
    floor = sg.Surface(sg.Rectangle([0.0, 0.0, 0.0], [2.0, 2.4]), sg.Checker(0.4))
    ball = sg.Surface(sg.Sphere([0.1, 0.0, 0.5], 0.5), sg.Normals(), 0.8)
    return sg.Scene(sg.Group(floor=floor, ball=ball), background=[0.1, 0.2, 0.3])


def cloud():
    """A blob in a box."""
    blob = sg.Volume(GaussianBlob([0.1, 0.0, 0.2], 0.4, 4.0, [0.9, 0.3, 0.1]))
    return sg.Scene(
        sg.Group(blob=blob), background=[0.1, 0.2, 0.3], integrator=sg.Hierarchical((8,))
    )


def camera(n=1):
    return scale_resolution(sg.PerspectiveCamera.look_at(EYE, TARGET, UP, 0.9, WIDTH, HEIGHT), n)


CAMERAS = {
    "perspective": camera,
    "orthographic": lambda n: scale_resolution(
        sg.OrthographicCamera.look_at(EYE, TARGET, UP, 3.0, WIDTH, HEIGHT), n
    ),
    "fisheye": lambda n: scale_resolution(
        sg.FisheyeCamera(POSE, [6.0, 6.5], WIDTH, HEIGHT, k1=0.05), n
    ),
    "panorama": lambda n: sg.PanoramaCamera(POSE, n * WIDTH, n * HEIGHT),
}


def blocks(x, n):
    """The parts of every pixel, along the third axis."""
    x = x.reshape(HEIGHT, n, WIDTH, n, *x.shape[2:])
    return x.swapaxes(1, 2).reshape(HEIGHT, WIDTH, n * n, *x.shape[4:])


def picture(make, scene, n):
    return sg.render(scene, make(1), outputs=EVERY, samples_per_pixel=n * n)


def fine(make, scene, n):
    """A picture with `n` times the resolution, by blocks."""
    image = sg.render(scene, make(n), outputs=EVERY)
    return {name: blocks(np.asarray(getattr(image, name)), n) for name in EVERY}


# --- Which cones


@pytest.mark.slow
def test_one_sample_is_the_pixel_itself():
    """Bit for bit, with media and without."""
    for scene in (board(), cloud()):
        for key in (None, jax.random.key(3)):
            plain = sg.render(scene, camera(), key=key)
            one = sg.render(scene, camera(), key=key, samples_per_pixel=1)
            assert eqx.tree_equal(one, plain)


@pytest.mark.parametrize(
    "kind",
    ["perspective", *(pytest.param(x, marks=pytest.mark.slow) for x in list(CAMERAS)[1:])],
)
def test_cones_are_those_of_a_camera_with_more_pixels(kind):
    image, parts = picture(CAMERAS[kind], board(), 3), fine(CAMERAS[kind], board(), 3)
    weights = parts["alpha"]
    assert_close(image.rgb, np.mean(parts["rgb"], axis=2), 2e-5)
    assert_close(image.alpha, np.mean(weights, axis=2), 2e-5)
    total = np.sum(weights, axis=2)
    depth = np.sum(weights * parts["depth"], axis=2) / np.where(total > 0, total, 1)
    seen = total > 0
    assert 0 < np.sum(seen) and np.sum(~seen) >= (kind != "panorama")
    assert_close(np.asarray(image.depth)[seen], depth[seen], 2e-5)
    assert_close(np.asarray(image.depth)[~seen], np.full(np.sum(~seen), 100.0))
    normal = safe_normalise(jnp.asarray(np.sum(weights[..., None] * parts["normal"], axis=2)))
    assert_close(np.asarray(image.normal)[total > 0.01], normal[total > 0.01], 1e-3)


def test_the_median_is_that_of_all_parts():
    """Naively: each part counts as often as it is opaque."""
    image, parts = picture(camera, board(), 3), fine(camera, board(), 3)
    image, parts = jax.tree.map(np.asarray, (image, parts))
    counts = np.round(1000 * np.asarray(parts["alpha"])).astype(int)
    for row, column in np.argwhere(counts.sum(axis=2) > 100):
        depths, count = parts["median_depth"][row, column], counts[row, column]
        repeated = np.sort(np.repeat(depths, count))
        near, far = repeated[[len(repeated) // 2 - 3, len(repeated) // 2 + 3]]
        assert near - 1e-4 <= image.median_depth[row, column] <= far + 1e-4


def test_media_are_split_too():
    image, parts = picture(camera, cloud(), 2), fine(camera, cloud(), 2)
    assert_close(image.rgb, np.mean(parts["rgb"], axis=2), 1e-5)


@pytest.mark.parametrize("scene", [pytest.param(board, marks=pytest.mark.slow), cloud])
def test_gradients_are_those_of_the_mean(scene):
    weights = np.random.default_rng(0).uniform(size=(HEIGHT, WIDTH, 3))

    def split(scene):
        return jnp.sum(weights * sg.render(scene, camera(), samples_per_pixel=4).rgb)

    def averaged(scene):
        return jnp.sum(weights * jnp.mean(blocks(sg.render(scene, camera(2)).rgb, 2), axis=2))

    ours, theirs = (eqx.filter_grad(function)(scene()) for function in (split, averaged))
    largest = max(np.max(np.abs(x)) for _, x, _ in named_leaves(theirs))
    for (path, one, _), (_, other, _) in zip(named_leaves(ours), named_leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * largest, err_msg=path)


def test_gradients_are_finite_where_nothing_is():
    away = sg.PerspectiveCamera.look_at(EYE, [0.5, -9.0, 1.5], UP, 0.9, 2, 2)

    def total(scene):
        image = sg.render(scene, away, outputs=EVERY, samples_per_pixel=4)
        return sum(jnp.sum(getattr(image, name)) for name in EVERY)

    gradient = eqx.filter_grad(total)(cloud())
    assert all(np.all(np.isfinite(x)) for _, x, _ in named_leaves(gradient))


# --- Keys, chunks, filters


def test_every_part_has_a_key_of_its_own():
    """Folded by the pixel's index, then by the part's: nothing else matters."""
    key, scene, n = jax.random.key(5), cloud(), 2
    image = sg.render(scene, camera(), key=key, samples_per_pixel=n * n)
    pixels, parts = np.divmod(np.arange(HEIGHT * WIDTH * n * n), n * n)
    x, y = pixels % WIDTH + (parts % n + 0.5) / n, pixels // WIDTH + (parts // n + 0.5) / n

    @eqx.filter_jit
    def by_hand(scene, eye, places):
        fold = jax.vmap(jax.random.fold_in, (None, 0))
        keys = jax.vmap(jax.random.fold_in)(fold(key, pixels), parts)
        rays = jax.vmap(widen, (0, None))(jax.vmap(eye.ray)(places), 1 / n)
        return integrate(flatten(scene), rays, scene.integrator, keys)

    (radiance,) = by_hand(scene, camera(), jnp.asarray(np.stack([x, y], axis=-1), jnp.float32))
    expected = np.asarray(radiance.rgb).reshape(HEIGHT, WIDTH, n * n, 3).mean(axis=2)
    assert_close(image.rgb, expected, 1e-5)


@pytest.mark.parametrize("chunk", [1, 50])
def test_chunks_change_nothing(chunk):
    settings = {"key": jax.random.key(1), "samples_per_pixel": 4, "outputs": EVERY}
    whole = sg.render(cloud(), camera(), **settings)
    image = sg.render(cloud(), camera(), chunk=chunk, **settings)
    for name in EVERY:
        assert_close(getattr(image, name), getattr(whole, name), 1e-5, 1e-6)


def test_a_chunk_counts_parts():
    """No more than `chunk` cones are worked on at once, but for those of one pixel."""
    scene = cloud()

    def program(chunk):
        draw = lambda eye: sg.render(scene, eye, samples_per_pixel=4, chunk=chunk).rgb
        return str(jax.make_jaxpr(draw)(camera()))

    # Each cone has eight samples.
    sizes = {chunk: re.findall(r"f32\[(\d+),8\]", program(chunk)) for chunk in (999, 9, 1)}
    assert {chunk: max(map(int, x)) for chunk, x in sizes.items()} == {999: 140, 9: 8, 1: 4}


def test_filters_come_after_the_mean():
    dark = sg.Gamma(3.0)
    plain = sg.render(cloud(), camera(), samples_per_pixel=4)
    assert_close(
        sg.render(cloud(), camera(), samples_per_pixel=4, filters=[dark]).rgb, dark(plain).rgb, 1e-6
    )


def test_incomplete_pixels_are_counted_once():
    """Every part of a pixel overflows, by one plane; `render` draws it again with more layers."""
    rows = [sg.Surface(sg.Plane([0, y, 0], [0, 1, 0]), [0.5] * 3, 0.5) for y in (0.0, 1.0, 2.0)]
    scene = sg.Scene(sg.Group(**{f"plane{i}": x for i, x in enumerate(rows)}))
    ahead = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.5, 3, 2)
    draw = lambda scene: sg.render(scene, ahead, sg.Surfaces(layers=2), samples_per_pixel=4)
    np.testing.assert_array_equal(eqx.filter_jit(draw)(scene).overflow, 4)
    image, every = draw(scene), sg.render(scene, ahead, samples_per_pixel=4)
    assert not np.any(image.overflow)
    np.testing.assert_allclose(image.rgb, every.rgb, atol=1e-6)


@pytest.mark.parametrize(
    ("number", "nearest"), [(2, "1 and 4"), (15, "9 and 16"), (0, "1"), (-4, "1")]
)
def test_other_numbers_are_refused(number, nearest):
    with pytest.raises(ValueError, match=rf"got {number}. The nearest: {nearest}\."):
        sg.render(cloud(), camera(), samples_per_pixel=number)


# --- What it is for


SIZE = 64


def random_scene(seed):
    """Two balls, two boxes and two cylinders over a checkered floor, all turned."""
    rng = np.random.default_rng(seed)

    def thing(shape):
        turn, place = rng.normal(size=4), [*rng.uniform(-1, 1, 2), rng.uniform(0.1, 0.6)]
        frame = sg.Similarity(place, turn / np.linalg.norm(turn))
        return sg.Transformed(sg.Surface(shape, rng.uniform(size=3)), frame)

    middle = [0.0, 0.0, 0.0]
    balls = [thing(sg.Sphere(middle, rng.uniform(0.15, 0.4))) for _ in range(2)]
    boxes = [thing(sg.Box(*rng.uniform(0.15, 0.35, (2, 3)) * [[-1], [1]])) for _ in range(2)]
    sizes = [rng.uniform([0.1, 0.3], [0.25, 0.7]) for _ in range(2)]
    cylinders = [thing(sg.Cylinder(middle, *size)) for size in sizes]
    checker = sg.Checker(rng.uniform(0.2, 0.4), *rng.uniform(size=(2, 3)))
    half = rng.uniform(0.1, 0.3)
    floor = sg.Transformed(
        sg.Surface(sg.Rectangle(middle, [3.0, 3.0]), checker),
        sg.Similarity(rotation=[np.cos(half), 0.0, 0.0, np.sin(half)]),
    )
    things = {f"thing{i}": x for i, x in enumerate([*balls, *boxes, *cylinders])}
    return sg.Scene(sg.Group(floor=floor, **things), background=rng.uniform(size=3))


@eqx.filter_jit
def picture_and_gradient(scene, n):
    """The gradient is that of the mean squared difference to a grey picture, by every leaf."""
    eye = sg.PerspectiveCamera.look_at([0.6, -3.2, 1.6], TARGET, [0.2, 0, 1], 0.8, SIZE, SIZE)

    def loss(scene):
        rgb = sg.render(scene, eye, sg.Surfaces(8), samples_per_pixel=n * n).rgb
        return jnp.mean((rgb - 0.5) ** 2), rgb

    gradient, rgb = eqx.filter_grad(loss, has_aux=True)(scene)
    return rgb, jnp.concatenate([x.ravel() for _, x, _ in named_leaves(gradient)])


def root_mean_square(x):
    return np.sqrt(np.mean(np.square(x)))


@pytest.mark.slow
def test_sixteen_cones_have_less_than_a_quarter_of_the_error_of_one():
    """Against 256, in four scenes: in every picture, and on average over the gradients."""
    ratios = []
    for seed in range(4):
        results = [picture_and_gradient(random_scene(seed), n) for n in (1, 4, 16)]
        for one, some, many in zip(*results, strict=True):
            ratios.append(root_mean_square(some - many) / root_mean_square(one - many))
    pictures, gradients = np.reshape(ratios, (4, 2)).T
    assert np.all(pictures < 0.25)
    # One scene's gradient is right to a few per cent with one cone, and gains less.
    assert np.exp(np.mean(np.log(gradients))) < 0.25 and np.all(gradients < 0.5)
