"""Places, colours and losses are products in full precision, whatever a device's default is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import scenegraph as sg


HIGHEST = (lax.Precision.HIGHEST, lax.Precision.HIGHEST)
EYE = sg.PerspectiveCamera.look_at([0, -7, 4], [0, 0, 0.5], [0, 0, 1], 0.8, 6, 4)


def products(jaxpr):
    """The precisions of all products of matrices in a jaxpr, and in those within it."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.params["precision"]
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=is_jaxpr):
            if is_jaxpr(value):
                yield from products(getattr(value, "jaxpr", value))


def is_jaxpr(value):
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def of_gradient(scene, camera=EYE, **options):
    """The precisions in a gradient of a picture."""
    arrays, rest = eqx.partition(scene, eqx.is_inexact_array)

    def loss(arrays):
        picture = sg.render(eqx.combine(arrays, rest), camera, **options)
        return jnp.mean(picture.rgb**2)

    return set(products(jax.make_jaxpr(jax.grad(loss))(arrays).jaxpr))


def mesh():
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
    ball = sg.Surface(sg.TriangleMesh(corners, faces), sg.Lambert([0.5] * 3))
    return sg.Scene(sg.Group(ball=ball, lamp=sg.PointLight([2, -2, 5], [40.0] * 3)))


def fog():
    ball = sg.Surface(sg.Sphere(), sg.Constant([0.2, 0.5, 0.8]))
    blob = sg.Volume(sg.fields.GaussianBlob([0.1, 0.0, 0.0], 0.4, 4.0, (0.8, 0.3, 0.1)))
    return sg.Scene(sg.Group(ball=ball, blob=blob))


@pytest.mark.parametrize("scene", [mesh, fog, sg.diagnostics.gallery_scene])
def test_scenes(scene):
    assert of_gradient(scene()) <= {HIGHEST}


def test_the_default_is_seen():
    """A network's layers have the precision that JAX has for a device."""
    field = sg.fields.MipNerfMLP(width=8, depth=2, view_width=4, key=jax.random.key(0))
    scene = sg.Scene(sg.Volume(field), integrator=sg.Hierarchical((4,)))
    assert None in of_gradient(scene)
