"""Shaders that show the shape itself."""

import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.shaders import InSpace
from support.helpers import assert_close
from support.shading import color_at, colors, lit_hit


def test_normals_as_colours():
    hit, view = lit_hit([0.6, 0.0, -0.8]), jnp.array([0.0, 0.0, 1.0])
    assert_close(sg.Normals()(hit, view, sg.rays.no_light()), [0.8, 0.5, 0.1], 1e-6)


def test_coordinates_as_colours():
    places = np.array([[0.25, 1.75], [-0.25, -3.5]])
    expected = np.array([[0.25, 0.75, 0.0], [0.75, 0.5, 0.0]])
    assert_close(colors(sg.UV(), places, np.zeros((2, 2, 2))), expected, 1e-6)
    in_space = color_at(sg.UV(InSpace()), jnp.array([0.25, 1.5, -0.25]), jnp.zeros((3, 2)))
    assert_close(in_space, [0.25, 0.5, 0.75], 1e-6)


def test_constant_whatever_the_light():
    hit, view = lit_hit(), jnp.array([0.0, 0.0, -1.0])
    assert_close(sg.Constant([0.2, 0.3, 0.4])(hit, view, sg.rays.no_light()), [0.2, 0.3, 0.4], 1e-6)
