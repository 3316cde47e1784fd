"""The albedo of every shader: its base colour, whatever lights there are."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import scenegraph as sg
from scenegraph import shaders
from scenegraph.shaders import albedo_of
from support.helpers import assert_close
from support.shading import lit_hit


BASE = [0.7, 0.4, 0.2]
VIEW = jnp.array([0.0, 0.6, -0.8])
# A picture of one texel, and a ramp that is constant where the hit is.
ONE_COLOR = {
    "constant": sg.Constant(BASE),
    "checker": sg.Checker(1e3, BASE, BASE),
    "stripes": sg.Stripes(1.0, BASE, BASE),
    "gradient": sg.Gradient(color_a=BASE, color_b=BASE),
    "noise": sg.Noise(1.0, BASE, BASE),
    "texture": sg.ImageTexture(jnp.asarray([[BASE]])),
}
LIT = {
    "lambert": sg.Lambert(BASE),
    "phong": sg.Phong(BASE, [0.3, 0.3, 0.3]),
    "paint": sg.GGX(BASE),
    "metal": sg.GGX(BASE, 1.0, 0.3, emission=[2.0, 2.0, 2.0]),
    "pattern": sg.Lambert(ONE_COLOR["texture"]),
    "views": shaders.ViewDependent(BASE, jnp.ones((1, 1, 4, 3))),
    "vertices": shaders.VertexColor(sg.Phong(BASE)),
}


class Chalk(shaders.AbstractShader):
    """A shader of a user's, which says nothing about albedos."""

    color: jax.Array = eqx.field(converter=jnp.asarray)
    needs_light: ClassVar[bool] = True

    def __call__(self, hit, view, lights):
        return self.color * (shaders.incident(hit, lights) / jnp.pi + lights.ambient)


@pytest.mark.parametrize("name", [*ONE_COLOR, *LIT])
def test_albedo_is_the_base_colour(name):
    shader = (ONE_COLOR | LIT)[name]
    found = eqx.filter_jit(albedo_of)(shader, lit_hit([0.0, 0.0, 1.0]), VIEW)
    assert_close(found, BASE, 1e-6)


def test_shaders_that_say_nothing_have_their_colour_in_even_light():
    found = eqx.filter_jit(albedo_of)(Chalk(BASE), lit_hit([0.0, 0.0, 1.0]), VIEW)
    assert_close(found, BASE, 1e-6)


def test_what_shows_the_shape_has_its_own_colour():
    hit = lit_hit([0.6, 0.0, 0.8])
    assert_close(albedo_of(sg.Normals(), hit, VIEW), [0.8, 0.5, 0.9], 1e-6)
    uv = eqx.tree_at(lambda x: x.uv, hit, jnp.array([0.25, 1.5]))
    assert_close(albedo_of(sg.UV(), uv, VIEW), [0.25, 0.5, 0.0], 1e-6)


def test_vertices_multiply_the_albedo():
    hit = eqx.tree_at(
        lambda x: x.color, lit_hit(), jnp.array([0.5, 1.0, 0.0]), is_leaf=lambda x: x is None
    )
    assert_close(albedo_of(shaders.VertexColor(sg.Phong(BASE)), hit, VIEW), [0.35, 0.4, 0.0], 1e-6)
