"""Height fields: beside planes, naive loops over cells, and finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


DRAW = np.random.default_rng(3)
HEIGHTS = DRAW.uniform(0, 0.5, (4, 5))
SIZE, CENTER = np.array([2.0, 1.5]), np.array([0.1, -0.2, 0.3])
CAMERA = sg.PerspectiveCamera.look_at([0.8, -3.0, 2.2], [0.1, -0.2, 0.4], [0, 0, 1], 0.7, 24, 20)


def picture(shape, camera=CAMERA, **more):
    lamp = sg.PointLight([1.0, -2.0, 3.0], [12.0] * 3)
    thing = sg.Surface(shape, sg.Lambert([0.6, 0.7, 0.5]))
    return sg.render(sg.Scene(sg.Group(thing=thing, lamp=lamp)), camera, **more)


def naive_mesh(heights, size, center):
    """Two triangles a cell, by loops."""
    rows, columns = heights.shape
    points, faces = [], []
    for row in range(rows):
        for column in range(columns):
            x, y = (column / (columns - 1) - 0.5) * size[0], (row / (rows - 1) - 0.5) * size[1]
            points.append(np.asarray(center) + [x, y, heights[row, column]])
    for row in range(rows - 1):
        for column in range(columns - 1):
            a = row * columns + column
            b, c, d = a + 1, a + columns + 1, a + columns
            faces += [[a, b, d], [b, c, d]]
    return np.array(points), np.array(faces)


def test_its_triangles_are_those_of_a_loop():
    field = sg.HeightField(HEIGHTS, SIZE, CENTER, smooth=False)
    mesh = sg.TriangleMesh(*naive_mesh(HEIGHTS, SIZE, CENTER), smooth=False)
    assert_close(picture(field).rgb, picture(mesh).rgb, 1e-5)


def test_a_ramp_is_a_plane():
    """z = a + b x + c y: the pictures and normals of an endless plane, in its middle."""
    x, y = np.meshgrid(np.linspace(-4, 4, 5), np.linspace(-3, 3, 4))
    ramp = sg.HeightField(0.2 + 0.3 * x - 0.1 * y, [8.0, 6.0])
    plane = sg.Plane([0.0, 0.0, 0.2], [-0.3, 0.1, 1.0])
    camera = sg.PerspectiveCamera.look_at([0.3, -2.0, 3.0], [0, 0, 0.2], [0, 0, 1], 0.6, 16, 12)
    one, other = (picture(x, camera, outputs=("normal", "uv")) for x in (ramp, plane))
    # Where a pixel shows two triangles, their depth is that of a point of one of them.
    for name, bound in (("rgb", 2e-3), ("depth", 5e-3), ("normal", 1e-4)):
        assert_close(getattr(one, name), getattr(other, name), bound)
    # Coordinates are x and y of what is seen.
    seen = picture(ramp, camera, outputs=("position", "uv"))
    assert_close(seen.uv, seen.position[..., :2], 1e-4)


def test_normals_of_a_bowl_are_those_of_its_formula():
    """Central differences are exact for a quadratic, inside."""
    x, y = np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1, 1, 9))
    mesh = sg.HeightField(0.3 * x**2 + 0.2 * x * y, [2.0, 2.0]).mesh()
    normals = np.asarray(mesh.vertex_values()[0]).reshape(9, 9, 3)[1:-1, 1:-1]
    wanted = np.stack([-0.6 * x - 0.2 * y, -0.2 * x, 1 + 0 * x], axis=-1)[1:-1, 1:-1]
    assert_close(normals, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True), 1e-5)


def test_with_a_base_it_is_closed():
    """Every edge has two faces, in opposite senses; the volume is that under the triangles."""
    base, rows, columns = -0.4, *HEIGHTS.shape
    mesh = sg.HeightField(HEIGHTS, SIZE, CENTER, base).mesh()
    points = np.round(np.asarray(mesh.vertices, float), 5)
    corners = points[np.asarray(mesh.faces)]
    a, b, c = np.moveaxis(corners, 1, 0)
    volume = np.sum(a * np.cross(b, c)) / 6
    # The prism under a triangle has its area times the mean of its heights.
    half = SIZE[0] / (columns - 1) * SIZE[1] / (rows - 1) / 2
    _, faces = naive_mesh(HEIGHTS, SIZE, CENTER)
    assert_close(volume, half * np.sum(HEIGHTS.ravel()[faces].mean(axis=1) - base), 1e-4)
    # Walls are whole rows of cells, the bottom two triangles: what is open between them are edges
    # of the bottom against those of walls, which lie on them.
    top = [
        tuple(map(tuple, (p, q)))
        for t in corners
        for p, q in zip(t, np.roll(t, -1, 0), strict=True)
    ]
    above = [edge for edge in top if max(p[2] for p in edge) > CENTER[2] + base + 1e-3]
    assert sorted(above) == sorted((q, p) for p, q in above)


def test_derivatives_by_heights_size_and_base(x64):
    """Against differences, with the walls in view."""
    weights = jnp.linspace(0.2, 1, CAMERA.height)[:, None]
    camera = jax.tree.map(lambda x: x.astype(float) if eqx.is_inexact_array(x) else x, CAMERA)

    @jax.jit
    def shown(heights, size, base):
        shape = sg.HeightField(heights, size, jnp.asarray(CENTER), base)
        return jnp.sum(picture(shape, camera).alpha * weights)

    leaves = jnp.asarray(HEIGHTS), jnp.asarray(SIZE), jnp.asarray(-0.4)
    slopes = jax.jit(jax.grad(shown, (0, 1, 2)))(*leaves)
    for seed in range(2):
        draw = np.random.default_rng(seed)
        way = [jnp.asarray(draw.normal(size=x.shape)) for x in leaves]
        move = lambda h, way=way: shown(*(x + h * d for x, d in zip(leaves, way, strict=True)))
        steps = 1e-5
        wanted = (move(steps) - move(-steps)) / (2 * steps)
        found = sum(jnp.sum(x * d) for x, d in zip(slopes, way, strict=True))
        assert_close(found, wanted, 2e-3)


def test_a_large_field_is_the_same_in_another_order():
    """More faces than are kept in rows: the triangles are the same."""
    heights = DRAW.uniform(0, 0.3, (30, 25))
    mesh = sg.HeightField(heights, SIZE).mesh()
    wanted = naive_mesh(heights, SIZE, [0, 0, 0])[1]
    assert sorted(map(tuple, np.asarray(mesh.faces).tolist())) == sorted(
        map(tuple, wanted.tolist())
    )


def test_copies_differ_in_heights():
    """`Instances` of a field, each with its own heights, beside single ones."""
    places = [sg.Similarity([-1.2, 0, 0]), sg.Similarity([1.2, 0, 0])]
    alike = lambda heights: sg.Surface(sg.HeightField(heights, SIZE), [0.5, 0.6, 0.7])
    single = sg.Group(
        a=sg.Transformed(alike(HEIGHTS), places[0]), b=sg.Transformed(alike(HEIGHTS), places[1])
    )
    both = sg.Instances(alike(HEIGHTS), places)
    one, other = (sg.render(sg.Scene(x), CAMERA).rgb for x in (sg.Group(x=both), single))
    assert_close(one, other, 1e-6)


@pytest.mark.parametrize("shape", [(1, 4), (3, 1)])
def test_too_few_rows_are_refused(shape):
    with pytest.raises(ValueError, match=rf"at least two rows.*\({shape[0]}, {shape[1]}\)"):
        sg.HeightField(np.zeros(shape))


def test_heights_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"HeightField\.heights\[1\]"):
        sg.HeightField([[0.0, 0.0], [0.0, np.nan]])
