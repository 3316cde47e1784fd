"""Parallel rays exactly along the axes of things, beside those turned by a thousandth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import Ray
from support.hard_triangles import icosphere, slab


# Pixels of a half, whose sides lie on multiples of it.
PIXELS, SIDE = 16, 0.5
CUBE = slab([1.0, 1.0, 1.0])
# Round shapes of few pixels look up to a tenth too large.
SHAPES = {  # with the areas that are seen along x, y and z
    "box": (sg.Box([-1.3, -0.9, -1.1], [1.1, 0.7, 0.85]), (1.6 * 1.95, 2.4 * 1.95, 2.4 * 1.6)),
    "box on pixel sides": (sg.Box([-1.0] * 3, [1.0] * 3), (4, 4, 4)),
    "cylinder": (sg.Cylinder(), (4, 4, np.pi)),
    "cylinder aside": (sg.Cylinder([0.2, -0.3, 0.1], 0.9, 1.3), (2.34, 2.34, 0.81 * np.pi)),
    "capsule": (sg.Capsule(), (1 + np.pi / 4, 1 + np.pi / 4, np.pi / 4)),
    "capsule along x": (
        sg.Capsule([-1.0, 0, 0], [1.0, 0, 0], 1.0),
        (np.pi, 4 + np.pi, 4 + np.pi),
    ),
    "sphere": (sg.Sphere([0.2, 0.1, 0.0], 1.2), (1.44 * np.pi,) * 3),
    "disk": (sg.Disk([0.0, 0.0, 0.25], 1.2), (0, 0, 1.44 * np.pi)),
    "rectangle": (sg.Rectangle([0.0, 0.0, 0.25], [2.0, 3.0]), (0, 0, 6)),
    "cube mesh on pixel sides": (sg.TriangleMesh(*CUBE, smooth=False), (4, 4, 4)),
    "one-sided cube mesh": (sg.TriangleMesh(*CUBE, smooth=False, two_sided=False), (4, 4, 4)),
}


def parallel_rays(axis, sign, angle, far):
    """Rays of a picture against an axis, turned by an angle about a line across it."""
    forward, right, up = -sign * np.eye(3)[axis], np.eye(3)[axis - 1], np.eye(3)[axis - 2]
    tilt = 0.6 * right + 0.8 * up
    forward, right, up = (
        v * np.cos(angle)
        + np.cross(tilt, v) * np.sin(angle)
        + tilt * (tilt @ v) * (1 - np.cos(angle))
        for v in (forward, right, up)
    )
    places = SIDE * (np.arange(PIXELS) + 0.5 - PIXELS / 2)
    x, y = (z.ravel()[:, None] for z in np.meshgrid(places, places))
    origin = x * right + y * up - 4 * forward
    same = lambda value: np.broadcast_to(value, (len(origin), *np.shape(value)))
    sides = SIDE * np.stack([right, up])
    parts = origin, same(forward), same(forward), same(sides), same(0 * sides)
    limits = np.full((2, len(origin)), [[1e-4], [far]])
    return [x.astype(np.float32) for x in (*parts, *limits)]


@jax.jit
def seen_of(shape, rays):
    one = lambda ray: (jnp.sum(shape.parts(ray).coverage), shape.coverage(ray))
    return jax.vmap(one)(rays)


@pytest.mark.parametrize("name", SHAPES)
def test_along_an_axis_and_beside(name):
    """Pictures and shadows, of every axis from both sides: alike, and of the right area."""
    shape, areas = SHAPES[name]
    views = [(axis, sign, far) for axis in range(3) for sign, far in ((1, np.inf), (-1, 1e4))]
    every = [parallel_rays(axis, sign, a, far) for a in (0.0, 1e-3) for axis, sign, far in views]
    rays = Ray(*(jnp.asarray(np.concatenate(x)) for x in zip(*every, strict=True)))
    for found in seen_of(shape, rays):
        exact, beside = np.asarray(found).reshape(2, len(views), -1)
        assert np.max(np.abs(exact - beside)) < 0.02
        for (axis, *_), covered in zip(views, exact, strict=True):
            assert np.sum(covered) * SIDE**2 == pytest.approx(areas[axis], rel=0.08, abs=1e-3)


@pytest.mark.parametrize("direction", [[0, 0, 1.0], [0, 0, -2.0], [0, 1e-9, 1.0], [0, 3e-4, 1.0]])
@pytest.mark.parametrize(
    "shape",
    [
        sg.Cylinder(height=2.0),
        sg.Capsule([0, 0, -0.5], [0, 0, 0.5], 0.5),
        sg.Box([-1.0] * 3, [1.0] * 3),
        sg.Sphere(),
    ],
    ids=lambda x: type(x).__name__,
)
def test_from_inside_along_the_axis(shape, direction):
    """The far end is hit, from the middle and from beside it."""
    direction = jnp.asarray(direction)
    for start in ([0.0, 0.0, 0.0], [0.02, -0.01, 0.1]):
        none = jnp.zeros((2, 3))
        ray = Ray(jnp.asarray(start), direction, direction, none, none, 0.0, jnp.inf)
        hit = jax.jit(lambda shape, ray: shape.intersect(ray))(shape, ray)
        z = start[2] + hit.t * direction[2]
        assert z == pytest.approx(np.sign(direction[2]), abs=2e-3)
        assert hit.coverage == 1


@pytest.mark.parametrize("two_sided", [True, False])
def test_rays_at_vertices_and_edges_hit(two_sided):
    """A closed mesh lets nothing through: at vertices, and at middles of edges."""
    vertices, faces = icosphere(2)
    ends = vertices[np.concatenate([faces[:, :2], faces[:, 1:]])]
    points = np.concatenate([vertices, ends.mean(1)]).astype(np.float32)
    scene = sg.Scene(
        sg.Surface(sg.TriangleMesh(vertices, faces, smooth=False, two_sided=two_sided), [1.0] * 3)
    )
    shift = np.array([[0.1, -0.2, 0.3], [0.0, 0.0, 0.0]], np.float32)
    for aside in shift:
        start = 3 * points + aside
        t = np.asarray(sg.cast_rays(scene, jnp.asarray(start), jnp.asarray(points - start)).t)
        np.testing.assert_allclose(t, 1, atol=1e-3)
