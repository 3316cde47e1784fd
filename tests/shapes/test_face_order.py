"""Meshes of many faces keep them in an order in which neighbours are near."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import _mesh_faces
from scenegraph.shapes._face_order import order_faces


def sheet(side: int) -> tuple[np.ndarray, np.ndarray]:
    """A bent square of `2 side^2` triangles, row after row."""
    x, y = np.meshgrid(*[np.linspace(0, 1, side + 1)] * 2, indexing="ij")
    points = np.stack([x, y, 0.3 * np.sin(5 * x)], axis=-1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).reshape(-1, 1)
    faces = np.concatenate(
        [corner + [0, side + 1, side + 2], corner + [0, side + 2, 1]], dtype=np.int32
    )
    return points, faces


def size_of_runs(places: np.ndarray) -> float:
    """The mean over runs of 32 places of the longest side of the box about them."""
    runs = places[: len(places) // 32 * 32].reshape(-1, 32, 3)
    return float(np.mean(np.max(np.ptp(runs, axis=1), axis=-1)))


def turned(faces: np.ndarray) -> set:
    """Triangles, whatever their order and their first corner."""
    return {tuple(np.roll(face, -np.argmin(face))) for face in np.asarray(faces).tolist()}


@pytest.mark.parametrize("count", [1025, 5000, 33_000])
def test_runs_of_the_order_are_small(count):
    places = np.random.default_rng(count).uniform(size=(count, 3)) * [1, 1, 0.01]
    order = order_faces(places)
    np.testing.assert_array_equal(np.sort(order), np.arange(count))
    # Square tiles of a unit square that hold 32 of its points have sides of sqrt(32 / count).
    tile = (32 / count) ** 0.5
    assert size_of_runs(places[order]) < 1.6 * tile
    assert size_of_runs(places) > 0.9


def test_few_faces_stay_as_given_and_many_are_all_there():
    for side in (8, 40):
        points, faces = sheet(side)
        mesh = sg.TriangleMesh(points, faces)
        assert turned(mesh.faces) == turned(faces)
        assert np.array_equal(mesh.faces, faces) == (side == 8)


def test_places_that_are_all_the_same_have_an_order():
    np.testing.assert_array_equal(np.sort(order_faces(np.zeros((2000, 3)))), np.arange(2000))


def test_an_order_that_is_near_stays_and_others_are_sorted():
    points, faces = sheet(40)
    points, own = jnp.asarray(points), sg.TriangleMesh(points, faces).faces
    mixed = own[np.random.default_rng(0).permutation(len(own))]
    in_order = jax.jit(lambda faces: faces[_mesh_faces._order_of(faces, points)])
    kept, placed = map(in_order, (own, mixed))
    np.testing.assert_array_equal(kept, own)
    assert turned(placed) == turned(own)
    middle = lambda x: np.mean(np.asarray(points)[x], axis=1)
    assert size_of_runs(middle(placed)) < 2 * size_of_runs(middle(own))
    assert size_of_runs(middle(mixed)) > 4 * size_of_runs(middle(own))


@pytest.mark.slow
def test_pictures_do_not_depend_on_the_order():
    points, faces = sheet(40)
    eye = sg.PerspectiveCamera.look_at([0.5, 0.2, 2], [0.5, 0.5, 0], [0, 1, 0], 0.7, 24, 24)
    lamp = sg.PointLight([0.2, 0.4, 2], [3.0] * 3)

    def picture(faces, traced):
        def draw(points):
            mesh = sg.Surface(sg.TriangleMesh(points, faces), sg.Lambert([0.8, 0.4, 0.2]))
            return sg.render(sg.Scene(sg.Group(mesh=mesh, lamp=lamp)), eye).rgb

        return (jax.jit(draw) if traced else draw)(jnp.asarray(points))

    # Within a trace the vertices have no values: faces stay as they are given until they are drawn.
    placed, given = picture(faces, False), picture(faces, True)
    assert float(jnp.max(placed)) > 0.1
    np.testing.assert_allclose(placed, given, atol=2e-6)
