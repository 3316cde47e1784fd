"""Derivatives of pictures by every parameter of every camera."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import scenegraph as sg
from scenegraph.cameras import pixel_centres


WIDTH, HEIGHT = 12, 10
POSE = sg.Pose.look_at([0.4, -3.0, 1.2], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
SCENE = sg.Scene(
    sg.Group(
        board=sg.Surface(sg.Rectangle(size=[2.0, 1.6]), sg.Checker(0.5, [0.9] * 3, [0.1] * 3)),
        ball=sg.Surface(sg.Sphere([0.3, 0.2, 0.3], 0.4), sg.Constant([0.9, 0.2, 0.1])),
    ),
    background=[0.4, 0.5, 0.6],
)
CAMERAS = {
    "perspective": sg.PerspectiveCamera(POSE, 12.0, WIDTH, HEIGHT, principal_point=[6.2, 4.9]),
    "orthographic": sg.OrthographicCamera(POSE, 5.0, WIDTH, HEIGHT),
    "opencv": sg.OpenCVCamera(
        POSE, [12.0, 11.0], WIDTH, HEIGHT, k1=-0.1, k2=0.03, p1=0.01, p2=-0.02, k3=0.01
    ),
    "fisheye": sg.FisheyeCamera(POSE, 9.0, WIDTH, HEIGHT, k1=0.05, k2=-0.02, k3=0.01, k4=0.002),
    "panorama": sg.PanoramaCamera(POSE, WIDTH, HEIGHT, focal=9.0),
    "rolling": sg.RollingShutter(
        sg.OpenCVCamera(POSE, [12.0, 11.0], WIDTH, HEIGHT, k1=-0.1, p1=0.01),
        [0.1, -0.05, 0.08, 0.06, -0.2, 0.1],
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CAMERAS)
def test_derivatives_of_every_parameter(name):
    """Of a picture's weighted sum, silhouettes included, against finite differences."""
    camera = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), CAMERAS[name])
    scene = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), SCENE)
    free, held = eqx.partition(camera, sg.scene.trainable_leaves(camera))
    pixels = pixel_centres(WIDTH, HEIGHT)
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(WIDTH * HEIGHT, 3)))

    @jax.jit
    def shown(free):
        rays = jax.vmap(eqx.combine(free, held).ray)(pixels)
        return jnp.sum(weights * sg.render_rays(scene, rays)[-1].rgb)

    vector, back = ravel_pytree(free)
    slopes = ravel_pytree(jax.jit(jax.grad(shown))(free))[0]
    paths = [
        path
        for path, leaf, frozen in sg.scene.named_leaves(camera)
        if not frozen
        for _ in range(leaf.size)
    ]
    step = 1e-6
    for number, path in enumerate(paths):
        ahead, behind = (shown(back(vector.at[number].add(s))) for s in (step, -step))
        expected = float(ahead - behind) / (2 * step)
        size = 1.0 if path in ("near", "far", "camera.near", "camera.far") else abs(expected)
        assert slopes[number] == pytest.approx(expected, abs=1e-3 * size + 1e-6), path
