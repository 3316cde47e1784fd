"""Convex surfaces have no shadow on themselves: none is computed, and none is lost."""

import logging
import re

import equinox as eqx
import jax
import numpy as np
import pytest

import scenegraph as sg


EYE = sg.PerspectiveCamera.look_at([0, -6, 3], [0, 0, 0], [0, 0, 1], 0.8, 12, 12)


def scene_of(**shapes):
    surfaces = {
        name: sg.Surface(shape, sg.Lambert([0.7, 0.4, 0.2])) for name, shape in shapes.items()
    }
    return sg.Scene(sg.Group(lamp=sg.PointLight([2.0, -2.0, 6.0], [60.0] * 3), **surfaces))


@pytest.fixture
def operations(caplog):
    """Returns the number of operations of a picture's kernels."""
    caplog.set_level(logging.INFO, sg.compile_log.name)

    def count(scene, *, shadows):
        caplog.clear()
        arrays, rest = eqx.partition(scene, eqx.is_array)
        how = sg.Surfaces(shadows=shadows, lists=False)
        picture = lambda arrays: sg.render(eqx.combine(arrays, rest), EYE, how).rgb
        jax.jit(picture).lower(arrays)
        counts = [re.search(r"native, (\d+) nodes", x.getMessage()) for x in caplog.records]
        assert counts
        assert all(counts)
        return sum(int(x[1]) for x in counts if x)

    return count


@pytest.mark.parametrize("shape", [sg.Sphere(), sg.Box([-1.0] * 3, [1.0] * 3)])
def test_nothing_is_computed_of_the_shadow_of_a_convex_surface_on_itself(shape, operations):
    scene = scene_of(thing=shape)
    assert operations(scene, shadows=True) == operations(scene, shadows=False)


def test_shadows_on_others_are_computed(operations):
    scene = scene_of(ball=sg.Sphere([0.0, 0.0, 1.0], 0.8), floor=sg.Plane())
    assert operations(scene, shadows=True) > operations(scene, shadows=False)
    dark, lit = (
        sg.render(scene, EYE, sg.Surfaces(shadows=shadows)).rgb for shadows in (True, False)
    )
    assert np.max(lit - dark) > 0.1
    assert np.min(lit - dark) > -1e-6
