"""Polygons to triangles: their areas add to that of the polygon, wherever it has dents."""

import numpy as np
import pytest

from scenegraph.models._faces import flat_and_repeated, number_rows
from scenegraph.models._polygons import clip_ears, split_polygons
from support.helpers import assert_close


def areas(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (points[faces[:, i]] for i in range(3))
    return ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2


def shoelace(points: np.ndarray) -> float:
    x, y = points.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


def star(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(5, 40))
    angle = (np.arange(count) + rng.uniform(0, 0.9, count)) * 2 * np.pi / count
    radius = rng.uniform(0.1, 1, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def spiral(count: int) -> np.ndarray:
    t = np.linspace(0, 6 * np.pi, count)
    ring = np.stack([np.cos(t), np.sin(t)], axis=1)
    return np.concatenate([ring * (t + 8)[:, None], (ring * (t + 5)[:, None])[::-1]])


COMB = np.array([(0, 0), (20, 0)] + [(i, 1 if i % 2 else 0.1) for i in range(21)][::-1], float)
FRAME = [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)]
LETTER = [(0, 0), (2, 0), (2, 2), (1, 2), (1, 1), (0, 1)]
WITH_CORNERS_ON_SIDES = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
POLYGONS = {
    "comb": COMB,
    "spiral": spiral(60),
    "frame": np.array(FRAME, float),
    "letter": np.array(LETTER, float),
    "corners on sides": np.array(WITH_CORNERS_ON_SIDES, float),
    **{f"star {seed}": star(seed) for seed in range(30)},
}


@pytest.mark.parametrize("name", POLYGONS)
def test_ears_cover_a_polygon_once(name):
    points = POLYGONS[name]
    found = areas(points, clip_ears(points))
    # None is turned round, so that they cannot cover anything twice and have this sum.
    assert np.all(found > -1e-9) and len(found) == len(points) - 2
    assert_close(np.sum(found), shoelace(points), 1e-9)


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("bend", [0.0, 0.05])
def test_polygons_in_space_from_any_corner(turn, bend):
    """An arrow's head, a letter and a star, tilted, and not quite flat."""
    rng = np.random.default_rng(turn)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    arrow = np.array([(0, 0), (2, 1), (0, 2), (1, 1)], float)
    shapes = [np.roll(x, turn, axis=0) for x in (arrow, np.array(LETTER, float), star(turn))]
    flat = np.concatenate(shapes)
    heights = bend * rng.uniform(-1, 1, len(flat)) * 0.1
    points = np.concatenate([flat, heights[:, None]], axis=1) @ axes.T + [1, 2, 3]
    counts = np.array([len(x) for x in shapes])
    corners = np.arange(len(flat))
    faces, too_large = split_polygons(counts, corners, points)
    assert too_large == 0 and len(faces) == np.sum(counts - 2)
    ends = np.cumsum(counts - 2)
    for i, shape in enumerate(shapes):
        own = faces[ends[i] - counts[i] + 2 : ends[i]]
        found = areas(flat, own)
        assert np.all(found > -1e-9)
        assert_close(np.sum(found), shoelace(shape), 1e-6)


def test_convex_polygons_stay_fans():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    faces, _ = split_polygons(np.array([4]), np.arange(4), square)
    assert faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_ears_of_one_point_end():
    for points in (np.zeros((9, 2)), np.full((9, 2), np.nan), np.eye(2)[[0, 1, 0, 1, 0, 1]]):
        assert clip_ears(points).shape == (len(points) - 2, 3)


# --- Faces


def test_flat_faces_beside_double_precision():
    rng = np.random.default_rng(0)
    vertices = np.float32(rng.integers(0, 3, (40, 3)) * 1.1)
    vertices[3] += np.float32(1e-6)
    vertices[4] *= np.float32(1e-20)
    vertices[5], vertices[6] = np.nan, np.float32(3e38)
    # Products of these are hardly above zero in single precision.
    vertices[30:] = np.float32(rng.integers(-3, 4, (10, 3)) * 3.1e-23)
    faces = rng.integers(0, 40, (5000, 3))
    faces[:500] = rng.integers(30, 40, (500, 3))
    a, b, c = np.moveaxis(vertices.astype(np.float64)[faces], 1, 0)
    right = np.all(np.cross(b - a, c - a) == 0, axis=1)
    np.testing.assert_array_equal(flat_and_repeated(faces, vertices)[0], right)
    assert 0 < np.sum(right) < len(right)


@pytest.mark.parametrize("count", [3, 6, 2**22])
def test_repeated_faces_beside_a_loop(count):
    rng = np.random.default_rng(count)
    faces = rng.integers(0, count, (60, 3))
    faces[50], faces[51] = np.roll(faces[3], 1), faces[3][::-1]
    seen, right = set(), []
    for face in faces.tolist():
        start = face.index(min(face))
        key = tuple(face[start:] + face[:start])
        right.append(key in seen)
        seen.add(key)
    vertices = np.zeros((count, 3), np.float32)
    assert flat_and_repeated(faces, vertices)[1].tolist() == right and right[50]


def test_repeated_faces_of_a_mesh_with_two_sides():
    """Each face is there in both senses; every third of one side comes again, turned."""
    faces = np.random.default_rng(0).permutation(900).reshape(300, 3)
    again = np.roll(faces[::3], 1, axis=1)
    found = flat_and_repeated(np.concatenate([faces, faces[:, ::-1], again]), np.zeros((900, 3)))[1]
    assert found.tolist() == [False] * 600 + [True] * 100


def test_number_rows_beside_a_loop():
    rows = np.random.default_rng(0).integers(-2, 3, (300, 2))
    first, numbers = number_rows(rows)
    known: dict[tuple, int] = {}
    assert [known.setdefault(tuple(row), len(known)) for row in rows.tolist()] == numbers.tolist()
    np.testing.assert_array_equal(rows[first][numbers], rows)
    with pytest.MonkeyPatch.context() as patch:
        # All keys equal: the slow way finds the same.
        patch.setattr("scenegraph.models._faces._row_keys", lambda x: np.zeros(len(x), np.uint64))
        slow_first, slow = number_rows(rows)
    np.testing.assert_array_equal(slow, numbers)
    np.testing.assert_array_equal(slow_first, first)
