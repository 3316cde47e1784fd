"""Per-ray code of the library is native: none of it is left to `jax.vmap`."""

import logging

import jax
import pytest

import scenegraph as sg
from scenegraph.rows import map_rows
from scenegraph.shapes import fragment_hit, piece_of
from support.contract_table import HITS, LIGHTS, LIT, RAYS, SHADERS, SHAPES


def named(things):
    return [pytest.param(x, id=f"{type(x).__name__}-{number}") for number, x in enumerate(things)]


@pytest.fixture
def left(caplog):
    """What is said of functions that are not native."""
    caplog.set_level(logging.INFO, "scenegraph.compile")
    return lambda: [x.getMessage() for x in caplog.records if "not native" in x.getMessage()]


def lower(function, shared, rows):
    jax.jit(lambda rows: map_rows(function, shared, rows)).lower(rows)


def test_what_is_not_native_is_said(left):
    lower(lambda _, hit: jax.lax.digamma(hit.point), None, HITS)
    assert left()


# Height fields are triangles before rays meet them.
@pytest.mark.parametrize("shape", named(x for x in SHAPES if type(x) is not sg.HeightField))
def test_shapes(shape, left):
    lower(lambda shape, ray: (shape.parts(ray), shape.coverage(ray)), shape, RAYS)
    assert not left()


def test_faces_of_meshes(left):
    face = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).triangles()
    one, owner = jax.tree.map(lambda x: x[0], face), jax.numpy.zeros((), int)

    def ask(face, ray):
        return fragment_hit(ray, face), piece_of(ray, face.corners, owner)

    lower(ask, one, RAYS)
    assert not left()


@pytest.mark.parametrize("shader", named(SHADERS))
def test_shaders(shader, left):
    lower(lambda shader, row: shader(*row), shader, (HITS, RAYS.view, LIT))
    assert not left()


@pytest.mark.parametrize("light", named(LIGHTS))
def test_lights(light, left):
    lower(lambda light, hit: light.sample(hit.point, hit.d_point), light, HITS)
    assert not left()
