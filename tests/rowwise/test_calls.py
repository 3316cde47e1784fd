"""Per-ray code of the library is computed number by number: no part of it is a call of an array.

What `map_rows` has no rule for is called on arrays put together for it, which is correct but slow:
hashing by such calls made a noise pattern 24 times as slow, and look-ups a box 3 times.
"""

import jax
import pytest

import scenegraph as sg
from scenegraph.rowwise import map_rows
from scenegraph.rowwise._scalarise import Scalariser
from scenegraph.shapes import fragment_hit, piece_of
from support.contract_table import HITS, LIGHTS, LIT, RAYS, SHADERS, SHAPES


# Tables are looked up in: texels, grids, faces, an integral by roughness and angle.
TABLES = (
    "ImageTexture",
    "PreparedTexture",
    "ViewDependent",
    "SignedDistance",
    "TriangleMesh",
    "GGX",
    "EnvironmentLight",
    "PreparedEnvironment",
)


def named(things):
    return [
        pytest.param(x, id=f"{type(x).__name__}-{number}")
        for number, x in enumerate(things)
        if type(x).__name__ not in TABLES
    ]


@pytest.fixture
def called(monkeypatch):
    """The names of the primitives that were called on arrays."""
    names, vectorise = [], Scalariser._vectorise

    def noted(self, equation, values):
        names.append(equation.primitive.name)
        return vectorise(self, equation, values)

    monkeypatch.setattr(Scalariser, "_vectorise", noted)
    return names


def lower(function, shared, rows):
    jax.jit(lambda rows: map_rows(function, shared, rows)).lower(rows)


def test_calls_are_noted(called):
    lower(lambda _, hit: jax.numpy.sort(hit.point), None, HITS)
    assert called


@pytest.mark.parametrize("shape", named(SHAPES))
def test_shapes(shape, called):
    lower(lambda shape, ray: (shape.parts(ray), shape.coverage(ray)), shape, RAYS)
    assert not called


def test_faces_of_meshes(called):
    face = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).triangles()
    one, owner = jax.tree.map(lambda x: x[0], face), jax.numpy.zeros((), int)

    def ask(face, ray):
        return fragment_hit(ray, face), piece_of(ray, face.corners, owner)

    lower(ask, one, RAYS)
    assert not called


@pytest.mark.parametrize("shader", named(SHADERS))
def test_shaders(shader, called):
    lower(lambda shader, row: shader(*row), shader, (HITS, RAYS.view, LIT))
    assert not called


@pytest.mark.parametrize("light", named(LIGHTS))
def test_lights(light, called):
    lower(lambda light, hit: light.sample(hit.point, hit.d_point), light, HITS)
    assert not called
