"""Pictures and their gradients lower for accelerators that this machine does not have."""

import equinox as eqx
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


CAMERA = sg.PerspectiveCamera.look_at([0, -6, 3], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)
LAMP, FLOOR = sg.PointLight([2, -3, 6.0], [40.0] * 3), sg.Surface(sg.Plane(), sg.Lambert([0.5] * 3))
BALL = sg.Surface(sg.Sphere([0.0, 0.0, 1.0], 0.5), sg.Lambert([0.5] * 3))
PLACES = np.random.default_rng(0).uniform(-2, 2, (40, 3))
SCENES = {
    "few": sg.Group(ball=BALL, lamp=LAMP, floor=FLOOR),
    "many": sg.Group(
        balls=sg.Instances(BALL, [sg.Similarity(at, scale=0.2) for at in PLACES]),
        box=sg.Surface(sg.Box([-0.3] * 3, [0.3] * 3), sg.GGX([0.5] * 3)),
        lamp=LAMP,
        floor=FLOOR,
    ),
    "lists of hundreds": sg.Group(
        balls=sg.Instances(BALL, [sg.Similarity(at, scale=0.1) for at in np.tile(PLACES, (7, 1))]),
        lamp=LAMP,
        floor=FLOOR,
    ),
    "mesh": sg.Group(
        mesh=sg.Surface(sg.TriangleMesh(PLACES[:39], np.arange(39).reshape(13, 3)), [0.5] * 3),
        lamp=LAMP,
        floor=FLOOR,
    ),
    "media": sg.Group(
        cloud=sg.Volume(sg.fields.GaussianBlob([0.0] * 3, 0.4, 5.0, [0.9, 0.5, 0.2])), ball=BALL
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "media" else pytest.mark.slow) for n in sorted(SCENES)],
)
@pytest.mark.filterwarnings("ignore:there is no light")
def test_pictures_and_gradients_lower_for_gpus_and_tpus(name):
    arrays, rest = eqx.partition(sg.Scene(SCENES[name]), eqx.is_inexact_array)
    # In chunks of a tile, so that what no mesh is near is drawn apart.
    picture = lambda arrays: sg.render(eqx.combine(arrays, rest), CAMERA, chunk=64).rgb
    gradient = jax.grad(lambda arrays: jnp.sum(picture(arrays) ** 2))
    for function in (picture, gradient):
        exported = jax.export.export(jax.jit(function), platforms=("cuda", "tpu"))(arrays)
        assert exported.platforms == ("cuda", "tpu")
