"""Meshes beside other things, in pictures of several chunks, against asking all faces."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


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
    integrator = sg.Surfaces(12, lists=lists)
    more = {"chunk": CHUNK, "samples_per_pixel": samples_per_pixel, "outputs": OUTPUTS}
    image = sg.render(scene, camera, integrator, **more)
    return {name: getattr(image, name) for name in (*OUTPUTS, "overflow")}


def gradient(scene, camera, weights, lists):
    loss = lambda x: jnp.sum(weights * picture(x, camera, lists)["rgb"])
    return eqx.filter_jit(eqx.filter_grad(loss))(scene)


def assert_equal_pictures(a, b):
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    "name", ["perspective", *(pytest.param(x, marks=pytest.mark.slow) for x in list(CAMERAS)[1:])]
)
def test_pictures_equal_those_of_asking_all_faces(name):
    for seed in range(4):
        scene = scene_of(seed)
        found, asked = (picture(scene, CAMERAS[name], lists) for lists in (None, False))
        assert_equal_pictures(found, asked)


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
    found, asked = (picture(scene, CAMERAS["perspective"], lists) for lists in (None, False))
    assert_equal_pictures(found, asked)
    assert 0 < np.mean(found["alpha"]) < 0.5


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
    found, asked = (picture(scene, CAMERAS["perspective"], lists, 4) for lists in (None, False))
    assert_equal_pictures(found, asked)
