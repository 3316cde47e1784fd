"""Light from behind a surface has shadows where its shader may see it, and no search elsewhere."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


class Paper(sg.shaders.AbstractShader):
    """Lets light through, and says nothing of it: a user's shader."""

    def __call__(self, hit, view, lights):
        cosines = jnp.abs(lights.direction @ hit.normal)
        return cosines @ lights.irradiance / jnp.pi


class OneSidedPaper(Paper):
    """Says that light from behind does not count."""

    needs_light_behind: ClassVar[bool] = False


def bumpy():
    texture = sg.shaders.Checker(0.3, [0.4, 0.5, 0.9], [0.6, 0.4, 0.8])
    return sg.shaders.GGX([0.8, 0.5, 0.3], 0.3, 0.4, sg.shaders.NormalMap(texture))


SHADERS = [Paper(), sg.Lambert(Paper()), sg.Lambert([0.8] * 3), sg.shaders.Phong(), bumpy()]


def scene_of(*shaders, opacity=1.0):
    """Upright rectangles between two lamps, with two balls on the way to that behind them."""
    wall = lambda shader, x: sg.Surface(sg.Rectangle([x, 0, 0], size=[0.4, 1.0]), shader)
    walls = sg.Group(**{f"wall{i}": wall(shader, i / 2 - 1) for i, shader in enumerate(shaders)})
    ball = lambda y: sg.Surface(sg.Sphere([0, y, 0], 0.3), sg.Lambert([0.5] * 3), opacity=opacity)
    return sg.Scene(
        sg.Group(
            upright=sg.Transformed(walls, sg.transforms.rotate_about([1, 0, 0], 1.3)),
            one=ball(0.6),
            two=ball(1.2),
            behind=sg.PointLight([0.1, 3.0, 0.4], [30.0] * 3),
            before=sg.PointLight([1.0, -3.0, 2.0], [9.0] * 3),
        )
    )


CAMERA = sg.PerspectiveCamera.look_at([0.3, -3.0, 0.5], [0.1, 0, 0], [0, 0, 1], 0.8, 24, 24)


@eqx.filter_jit
def picture(scene, *, lists):
    return sg.render(scene, CAMERA, integrator=sg.Surfaces(lists=lists))


def test_lists_shade_light_from_behind_as_all_surfaces_do():
    scene = scene_of(*SHADERS)
    listed, all_of_them = (picture(scene, lists=lists).rgb for lists in (True, False))
    np.testing.assert_allclose(listed, all_of_them, atol=1e-5)


@pytest.mark.slow
def test_gradients_with_light_from_behind_are_those_of_all_surfaces():
    loss = lambda scene, lists: jnp.mean(picture(scene, lists=lists).rgb ** 2)
    scene = scene_of(Paper(), bumpy())
    listed, all_of_them = (
        jax.tree.leaves(eqx.filter_grad(loss)(scene, lists)) for lists in (True, False)
    )
    for mine, full in zip(listed, all_of_them, strict=True):
        np.testing.assert_allclose(mine, full, atol=1e-4 * float(1e-3 + jnp.max(jnp.abs(full))))
