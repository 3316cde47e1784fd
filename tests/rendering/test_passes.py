"""Pictures in two passes: what no mesh is near is drawn as if there were none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rendering import _passes
from scenegraph.rendering._passes import _deal, in_one_pass, in_two_passes


# Four tiles in each of the four chunks of a picture of 32 x 32 pixels.
CHUNK, SIZE = 256, 32
POSE = sg.Pose.look_at([0.0, -3.0, 1.5], [0.0, 0.0, 0.4], [0.0, 0.0, 1.0])
CAMERAS = {
    "perspective": sg.PerspectiveCamera(POSE, 40.0, SIZE, SIZE),
    "orthographic": sg.OrthographicCamera(POSE, 3.0, SIZE, SIZE),
    "fisheye": sg.FisheyeCamera(POSE, [14.0, 14.0], SIZE, SIZE, k1=0.1),
    "panorama": sg.PanoramaCamera(POSE, SIZE, SIZE),
}


def tetrahedron(seed: int, height: float = 0.4) -> sg.Surface:
    draw = np.random.default_rng(seed)
    at = [*draw.uniform(-0.5, 0.5, 2), height]
    corners = at + 0.4 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    faces = [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]
    return sg.Surface(sg.TriangleMesh(corners, faces), sg.Lambert(draw.uniform(0.2, 0.9, 3)))


def scene_of(seed: int, height: float = 0.4) -> sg.Scene:
    draw = np.random.default_rng(seed)
    return sg.Scene(
        sg.Group(
            mesh=tetrahedron(seed, height),
            floor=sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.5))),
            ball=sg.Surface(sg.Sphere([*draw.uniform(-1, 1, 2), 0.3], 0.3), sg.Lambert([0.7] * 3)),
            lamp=sg.PointLight(draw.uniform([-2, -2, 3], [2, 2, 4]), [20.0] * 3),
        )
    )


OUTPUTS = "rgb", "alpha", "depth", "normal", "median_depth"


def picture(scene, camera, lists=None, samples_per_pixel=1):
    integrator = sg.Surfaces(12, lists=lists, occluders=12)
    more = {"chunk": CHUNK, "samples_per_pixel": samples_per_pixel, "outputs": OUTPUTS}
    image = sg.render(scene, camera, integrator, **more)
    return {name: getattr(image, name) for name in (*OUTPUTS, "overflow")}


def gradient(scene, camera, weights, lists):
    loss = lambda x: jnp.sum(weights * picture(x, camera, lists)["rgb"])
    return sg.tiered_jit(eqx.filter_grad(loss))(scene)


def assert_equal_pictures(a, b):
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    "name", ["perspective", *(pytest.param(x, marks=pytest.mark.slow) for x in list(CAMERAS)[1:])]
)
def test_pictures_equal_those_of_asking_all_faces(name):
    for seed in range(4):
        scene = scene_of(seed)
        two, asked = (picture(scene, CAMERAS[name], lists) for lists in (None, False))
        assert_equal_pictures(two, asked)


def test_a_mesh_outside_of_the_picture_casts_its_shadow():
    # Between the floor and the lamp, above all that the camera sees.
    scene, camera = scene_of(0, height=1.8), CAMERAS["perspective"]
    away = eqx.tree_at(lambda x: x["mesh.shape"].vertices, scene, replace_fn=lambda x: x + 100)
    shadowed, asked, without = (
        picture(*each) for each in ((scene, camera), (scene, camera, False), (away, camera))
    )
    assert_equal_pictures(shadowed, asked)
    assert np.max(np.abs(shadowed["rgb"] - without["rgb"])) > 0.1


def test_a_mesh_alone_is_before_nothing():
    lamp = sg.PointLight([1.0, -2.0, 3.0], [20.0] * 3)
    scene = sg.Scene(sg.Group(mesh=tetrahedron(0), lamp=lamp), background=[0.1, 0.2, 0.3])
    two, asked = (picture(scene, CAMERAS["perspective"], lists) for lists in (None, False))
    assert_equal_pictures(two, asked)
    assert 0 < np.mean(two["alpha"]) < 0.5


@pytest.mark.slow
def test_gradients_equal_those_of_asking_all_faces():
    weights = jax.random.normal(jax.random.key(3), (SIZE, SIZE, 3))
    for seed in range(2):
        found, expected = (
            gradient(scene_of(seed), CAMERAS["perspective"], weights, lists)
            for lists in (None, False)
        )
        assert np.max(np.abs(found["mesh.shape"].vertices)) > 0
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5 * max(1, float(jnp.max(jnp.abs(b)))))


@pytest.mark.slow
def test_parts_of_pixels_are_in_tiles_of_their_pixels():
    scene = scene_of(1)
    two, asked = (picture(scene, CAMERAS["perspective"], lists, 4) for lists in (None, False))
    assert_equal_pictures(two, asked)


def deal(left: np.ndarray, chunks: int) -> tuple[np.ndarray, int]:
    slots, count = _deal(jnp.asarray(left, jnp.int32), chunks)
    return np.asarray(slots), int(count)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 1])
def test_unfinished_tiles_are_dealt_once(share, threads, monkeypatch):
    monkeypatch.setattr(_passes, "count_threads", lambda: threads)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        # Some tiles have much more to do than others.
        left = np.where(rng.random(6 * 16) < share, rng.geometric(0.5, 96) ** 6, 0)
        dealt, count = deal(left, 6)
        least = -(-np.sum(left > 0) // 16)
        np.testing.assert_array_equal(dealt[dealt >= 0], np.nonzero(left)[0])
        # No more chunks than hold all, but as many for every thread.
        assert least <= count < least + threads and (count % threads == 0 or count == 6)
        assert np.all(dealt[count:] < 0)


@pytest.mark.parametrize("most", [1, 9, 300])
def test_chunks_have_about_as_much_to_do(most, monkeypatch):
    monkeypatch.setattr(_passes, "count_threads", lambda: 1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        # Of 8 chunks of 256 tiles, half of the tiles fill 4: to 97 of 100, so that there is room.
        unfinished = rng.permutation(2048) < 1000
        left = np.where(unfinished, rng.integers(1, most + 1, 2048), 0)
        dealt, count = deal(left, 8)
        assert count == 4
        effort = np.where(dealt >= 0, 8 + left[dealt], 0).sum(axis=1)[:count]
        full = np.sum(dealt >= 0, axis=1)[:count] == 256
        assert np.ptp(effort) <= 2 * (8 + most) or np.any(full)
        assert np.ptp(effort) < 0.3 * np.mean(effort)


def test_second_pass_computes_nothing_but_unfinished_tiles():
    # Of pixel i the first pass says i and the second 1000 + i; tiles from 4 on are unfinished. The
    # last two fill the last chunk.
    indices, seen = jnp.minimum(jnp.arange(640), 511).reshape(5, 128), []

    def begin(shared, i):
        return shared * i, jnp.where(i[::64] >= 4 * 64, 3, 0)

    def compute(shared, i):
        jax.debug.callback(lambda x: seen.append(np.asarray(x)), i)
        return 1000 + shared * i

    once = in_one_pass(lambda shared, i: 1000 + shared * i, 1, indices)
    twice = jax.jit(lambda i: in_two_passes(begin, compute, 1, i))(indices)
    jax.effects_barrier()
    expected = np.where(indices >= 256, once, indices)
    np.testing.assert_array_equal(twice.ravel()[:512], expected.ravel()[:512])
    computed = np.concatenate(seen)
    np.testing.assert_array_equal(np.sort(computed), np.arange(256, 512))


def test_gradients_pass_through_both_passes():
    indices = jnp.arange(512).reshape(4, 128)
    begin = lambda shared, i: (shared**2 * i, 1 - i[::64] % 128 // 64)
    compute = lambda shared, i: shared**3 * i
    total = lambda shared: jnp.sum(in_two_passes(begin, compute, shared, indices))
    # d/dx (x^2 a + x^3 b), of the sums of odd and of even tiles
    odd = np.sum(np.arange(512).reshape(-1, 2, 64), axis=(0, 2))
    expected = 2 * 3 * odd[1] + 3 * 9 * odd[0]
    np.testing.assert_allclose(jax.grad(total)(jnp.array(3.0)), expected, rtol=1e-6)
