"""Many members of a stack are put in order once a picture: neighbours are near to each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import scenegraph as sg


CENTERS = np.random.default_rng(0).uniform(-1, 1, (600, 3)).astype(np.float32)


def balls_at(centers):
    places = jax.vmap(lambda at: sg.Similarity(at, scale=0.05))(jnp.asarray(centers))
    return sg.Instances(sg.Surface(sg.Sphere(), sg.Lambert([0.5] * 3)), places)


def members_of(count):
    (stack,) = sg.flat.flatten(sg.Scene(balls_at(CENTERS[:count]))).occluders
    return stack.members


def test_neighbours_are_near_and_keep_their_numbers():
    members = members_of(600)
    numbers = np.asarray(members.number)
    assert sorted(numbers) == list(range(600))
    np.testing.assert_allclose(members.world_from_node.translation, CENTERS[numbers], atol=1e-6)
    steps = lambda points: np.linalg.norm(np.diff(points, axis=0), axis=1).mean()
    assert steps(CENTERS[numbers]) < 0.3 * steps(CENTERS)


def test_few_stay_as_they_are():
    np.testing.assert_array_equal(members_of(100).number, np.arange(100))


def count_sorts(jaxpr, size):
    own = sum(x.primitive.name == "sort" and x.invars[0].aval.shape == (size,) for x in jaxpr.eqns)
    inner = (x for equation in jaxpr.eqns for x in jaxprs_in_params(equation.params))
    return own + sum(count_sorts(x, size) for x in inner)


@pytest.mark.parametrize("shadows", [False, True])
def test_they_are_sorted_once_for_camera_and_shadows(shadows):
    lamp = sg.PointLight([1.0, -3.0, 2.0], [9.0] * 3)
    camera = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)

    def draw(centers):
        scene = sg.Scene(sg.Group(balls=balls_at(centers), lamp=lamp))
        return sg.render(scene, camera, integrator=sg.Surfaces(shadows=shadows)).rgb

    assert count_sorts(jax.make_jaxpr(draw)(jnp.asarray(CENTERS)).jaxpr, 600) == 1
