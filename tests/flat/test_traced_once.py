"""What is the same everywhere is traced once: a shape's hits, and the arrays of many nodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxprs_in_params

import scenegraph as sg


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)
calls = {"cross": 0}


class CountedSphere(sg.Sphere):
    """Counts how often it is traced."""

    def cross(self, ray):
        calls["cross"] += 1
        return super().cross(ray)


def scene_of(count, shape):
    node = lambda i: sg.Surface(
        shape([i / count - 0.5, 0, 0], 0.3), sg.Lambert([0.5, i / count, 1])
    )
    balls = sg.Group(**{f"ball{i}": node(i) for i in range(count)})
    return sg.Scene(sg.Group(balls=balls, lamp=sg.PointLight([1.0, -3.0, 2.0], [9.0] * 3)))


@pytest.mark.parametrize("count", [3, 9])
def test_a_shape_is_traced_once_for_rays_shading_and_shadows(count):
    jax.clear_caches()
    calls["cross"] = 0
    sg.render(scene_of(count, CountedSphere), CAMERA, integrator=sg.Surfaces(lists=True))
    assert calls["cross"] == 1


def count_equations(jaxpr):
    inner = lambda equation: sum(map(count_equations, jaxprs_in_params(equation.params)))
    return sum(1 + inner(equation) for equation in jaxpr.eqns)


def equations_of_gradient(count):
    loss = lambda scene: jnp.mean(sg.render(scene, CAMERA, integrator=sg.Surfaces(lists=True)).rgb)
    arrays, rest = eqx.partition(scene_of(count, sg.Sphere), eqx.is_inexact_array)
    gradient = jax.grad(lambda arrays: loss(eqx.combine(arrays, rest)))
    return count_equations(jax.make_jaxpr(gradient)(arrays).jaxpr)


def test_a_gradient_has_hardly_an_equation_for_every_node():
    # Arrays are stacked, and gradients taken apart, by one equation for all nodes of a kind.
    more = equations_of_gradient(40) - equations_of_gradient(20)
    assert more <= 20
