"""The choice between one program for a whole ray and a search: by the size of that program."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import flatten
from scenegraph.integrators._ray_size import ray_size
from scenegraph.rows import count_scalars


AT = np.array([0.3, -0.2, 0.6])
SHAPES = {
    "floor": sg.Plane(),
    "ball": sg.Sphere(AT, 0.4),
    "box": sg.Box(AT - 0.3, AT + 0.3),
    "capsule": sg.Capsule(AT, AT + np.array([0.1, 0.0, 0.6]), 0.3),
}


def scene(*names, lamps=1):
    things = {
        f"thing{i}": sg.Surface(SHAPES[x], sg.Lambert([0.5] * 3)) for i, x in enumerate(names)
    }
    lights = {f"lamp{i}": sg.PointLight([i, 0, 4], [9.0] * 3) for i in range(lamps)}
    return flatten(sg.Scene(sg.Group(**things, **lights)))


@pytest.mark.parametrize(
    ("names", "lamps"),
    [
        (("ball",), 1),
        (("ball",), 16),
        (("box",), 16),
        (("floor", "box"), 1),
        (("floor", "capsule", "ball"), 1),
        (("floor", "ball", "ball", "ball"), 1),
        (("floor", "ball"), 5),
    ],
)
def test_the_estimate_is_near_the_number_of_scalars(names, lamps):
    """Of the traced function, which is what the compiler gets."""
    flat, surfaces = scene(*names, lamps=lamps), sg.integrators.Surfaces()
    camera = sg.PerspectiveCamera.look_at([0, -6, 3], [0, 0, 0], [0, 0, 1], 0.8, 8, 8)
    ray = camera.ray(jnp.array([4.0, 4.0]))
    arrays, rest = eqx.partition(ray, eqx.is_array)
    along = partial(surfaces._along_one, fields=())
    counted, _ = count_scalars(lambda x: along(flat, eqx.combine(x, rest)), arrays)
    assert 0.6 * counted < ray_size(flat, surfaces.layers) < 1.4 * counted


@pytest.mark.parametrize(
    ("names", "lamps", "whole"),
    [
        (("ball",), 40, True),
        (("floor", "ball"), 9, True),
        (("floor", "ball", "ball", "ball"), 1, True),
        (("box",), 1, True),
        # Measured, 256 x 256: the gradient takes 1,615 ms as one program, 221 by a search.
        (("floor", *["ball"] * 4), 1, False),
        # 954 and 223 ms
        (("floor", "ball", "box"), 1, False),
        # 1,819 and 319 ms
        (("floor", "ball", "ball"), 3, False),
        (("ball",) * 300, 0, False),
    ],
)
def test_scenes_of_large_programs_are_searched(names, lamps, whole):
    assert sg.integrators.Surfaces().asks_all(scene(*names, lamps=lamps)) is whole


@pytest.mark.parametrize(("balls", "whole"), [(0, True), (1, False)])
def test_a_shape_of_many_numbers_beside_one_other_is_one_program(balls, whole):
    """Its gradient by a search, whose rows have a copy of each number, takes 16 GB to compile."""
    grid = np.linalg.norm(np.mgrid[-1:1:9j, -1:1:9j, -1:1:9j], axis=0) - 0.6
    shapes = [sg.SignedDistance.from_grid(grid, [-1.0] * 3, [1.0] * 3, steps=32), sg.Plane()]
    shapes += [sg.Sphere([0.0, 0.0, 3.0 + i], 0.4) for i in range(balls)]
    things = {f"thing{i}": sg.Surface(x, sg.Lambert([0.5] * 3)) for i, x in enumerate(shapes)}
    lamp = sg.PointLight([1.5, -2.0, 4.0], [30.0] * 3)
    flat = flatten(sg.Scene(sg.Group(**things, lamp=lamp)))
    assert sg.integrators.Surfaces().asks_all(flat) is whole


@pytest.mark.parametrize(("names", "whole"), [(("floor", "ball"), True), (("ball",) * 5, False)])
def test_few_surfaces_under_a_panorama_are_one_program(names, whole):
    """256 x 256 pixels, ball on a floor: 0.33 s, by a search 5.2; five things do not fit."""
    sky = sg.EnvironmentLight(np.ones((8, 16, 3)))
    things = {
        f"thing{i}": sg.Surface(SHAPES[x], sg.Lambert([0.5] * 3)) for i, x in enumerate(names)
    }
    flat = flatten(sg.Scene(sg.Group(**things, sky=sky)))
    assert sg.integrators.Surfaces().asks_all(flat) is whole


def test_shadows_that_are_off_cost_nothing():
    flat = scene("floor", *["ball"] * 4)
    assert sg.integrators.Surfaces(shadows=False).asks_all(flat)
