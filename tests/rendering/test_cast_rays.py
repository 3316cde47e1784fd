"""Nearest hits of lines against Möller and Trumbore's test of all triangles, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.hard_triangles import icosphere, torus


RAYS = 300


def rays(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lines from anywhere to anywhere; half of them towards the things."""
    draw = np.random.default_rng(seed)
    origins = draw.uniform([-5, -5, -1], [5, 5, 5], (RAYS, 3))
    directions = draw.normal(size=(RAYS, 3))
    middle = np.where(draw.random((RAYS, 1)) < 0.5, [2.5, 0, 0], [-1.0, 0, 0])
    to_things = draw.uniform(-1, 1, (RAYS, 3)) + middle - origins
    directions[::2] = to_things[::2]
    return origins, directions


def nearest_triangle(triangles, origins, directions) -> np.ndarray:
    """Möller and Trumbore 1997, of all triangles; infinite for a miss."""
    return nearest_face(triangles, origins, directions)[0]


def nearest_face(triangles, origins, directions):
    """The same, with the triangle's number and the shares of its corners."""
    nearest = np.full(len(origins), np.inf)
    face, shares = np.full(len(origins), -1), np.zeros((len(origins), 3))
    for number, (a, b, c) in enumerate(triangles):
        p = np.cross(directions, c - a)
        with np.errstate(all="ignore"):
            inverse = 1 / (p @ (b - a))
            u = np.sum(p * (origins - a), axis=1) * inverse
            q = np.cross(origins - a, b - a)
            v, t = np.sum(q * directions, axis=1) * inverse, q @ (c - a) * inverse
        hit = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0) & (t < nearest)
        nearest, face = np.where(hit, t, nearest), np.where(hit, number, face)
        shares = np.where(hit[:, None], np.stack([1 - u - v, u, v], axis=1), shares)
    return nearest, face, shares


def sphere_distance(center, radius, origins, directions) -> np.ndarray:
    away = origins - center
    a, b = np.sum(directions**2, axis=1), np.sum(away * directions, axis=1)
    root = b**2 - a * (np.sum(away**2, axis=1) - radius**2)
    with np.errstate(invalid="ignore"):
        ends = (-b + np.array([[-1], [1]]) * np.sqrt(root)) / a
    return np.min(np.where(ends > 0, ends, np.inf), axis=0)


def as_rays(origins, directions) -> tuple[jax.Array, jax.Array]:
    return jnp.asarray(origins, jnp.float32), jnp.asarray(directions, jnp.float32)


def test_nearest_of_meshes_and_shapes_is_found():
    """Meshes come first in the scene, so that shapes have numbers beyond their own count."""
    vertices, faces = icosphere(3)
    vertices = vertices + [2.5, 0, 0]
    things = {
        "mesh": sg.Surface(sg.TriangleMesh(vertices, faces), [1.0, 0, 0], opacity=0.5),
        "ball": sg.Surface(sg.Sphere([-1.0, 0, 0], 1.0), [0, 1.0, 0]),
        "floor": sg.Surface(sg.Plane([0.0, 0, -2]), [0, 0, 1.0]),
    }
    origins, directions = rays()
    hits = sg.cast_rays(sg.Scene(sg.Group(**things)), *as_rays(origins, directions))
    with np.errstate(divide="ignore"):
        down = (-2 - origins[:, 2]) / directions[:, 2]
    each = np.stack(
        [
            nearest_triangle(vertices[faces], origins, directions),
            sphere_distance([-1.0, 0, 0], 1.0, origins, directions),
            np.where(down > 0, down, np.inf),
        ]
    )
    expected, which = np.min(each, axis=0), np.argmin(each, axis=0)
    np.testing.assert_allclose(hits.t, expected, rtol=2e-5)
    hit = np.isfinite(expected)
    assert all(np.sum(hit & (which == kind)) > 20 for kind in range(3)) and np.sum(~hit) > 20
    opacity = np.where(hit, np.array([0.5, 1.0, 1.0])[which], 0)
    np.testing.assert_allclose(hits.coverage, opacity)
    reached = origins + np.where(hit, expected, 0)[:, None] * directions
    np.testing.assert_allclose(hits.point[hit], reached[hit], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(hits.normal, axis=1)[hit], 1, atol=1e-5)
    facing = np.sum(np.asarray(hits.normal) * directions, axis=1)
    assert np.all(facing[hit & (which > 0)] <= 1e-6)
    assert np.all(np.asarray(hits.normal)[~hit] == 0)


def test_hits_say_what_they_are_on():
    """Copies of an unordered mesh that is inside out, one of them mirrored, and a ball."""
    draw = np.random.default_rng(2)
    vertices, faces = icosphere(2)
    # Every part of the mesh has faces of all of it, and their fronts are inside.
    mesh = sg.TriangleMesh(vertices, draw.permutation(faces)[:, ::-1])
    faces = np.asarray(mesh.faces)
    moves = np.stack([np.eye(4), np.diag([-1.0, 1.0, 1.3, 1.0])])
    moves[1, :3, 3] = 2.5, 0.0, 0.0
    things = {
        "ball": sg.Surface(sg.Sphere([-1.0, 0, 3.0], 1.0), [0, 1.0, 0]),
        "pair": sg.Instances(sg.Group(mesh=sg.Surface(mesh, [1.0, 0, 0])), moves),
    }
    scene = sg.Scene(sg.Group(**things))
    assert sg.surface_paths(scene) == ["ball", "pair.mesh[0]", "pair.mesh[1]"]
    # To the middles of all three, past them here and there.
    middles = np.array([[-1.0, 0, 3.0], [0, 0, 0], [2.5, 0, 0]])[np.arange(RAYS) % 3]
    origins = draw.uniform([-5, -5, -1], [5, 5, 5], (RAYS, 3))
    directions = middles + draw.uniform(-1, 1, (RAYS, 3)) - origins
    hits = sg.cast_rays(scene, *as_rays(origins, directions))
    copies = [vertices @ move[:3, :3].T + move[:3, 3] for move in moves]
    each = [nearest_face(copy[faces], origins, directions) for copy in copies]
    ball = sphere_distance([-1.0, 0, 3.0], 1.0, origins, directions)
    t = np.stack([ball, *(one[0] for one in each)])
    surface = np.where(np.isfinite(t.min(axis=0)), t.argmin(axis=0), -1)
    assert all(np.sum(surface == number) > 15 for number in (-1, 0, 1, 2))
    # But at edges, where rounding says which of two faces it is.
    inside = np.min(np.stack([one[2] for one in each]), axis=2) > 1e-3
    sure = (surface < 1) | np.take_along_axis(inside, np.maximum(surface - 1, 0)[None], 0)[0]
    np.testing.assert_array_equal(hits.surface, surface)
    for number in (-1, 0):
        chosen = surface == number
        assert np.all(np.asarray(hits.face)[chosen] == -1) and not np.any(hits.barycentric[chosen])
    for copy, (_, face, shares) in enumerate(each):
        chosen = sure & (surface == copy + 1)
        np.testing.assert_array_equal(np.asarray(hits.face)[chosen], face[chosen])
        np.testing.assert_allclose(hits.barycentric[chosen], shares[chosen], atol=1e-4)


def test_shares_of_corners_are_differentiable():
    """On a triangle at z = 0, along z: they are linear in the place."""
    corners = jnp.array([[0.0, 0, 0], [2, 0, 0], [0, 4, 0]])
    down = jnp.array([[0.0, 0.0, -1.0]])

    def shares(corners, place):
        scene = sg.Scene(sg.Group(m=sg.Surface(sg.TriangleMesh(corners, [[0, 1, 2]]), "red")))
        hit = sg.cast_rays(scene, place[None], down)
        return hit.barycentric[0]

    place = jnp.array([0.5, 1.0, 3.0])
    np.testing.assert_allclose(shares(corners, place), [0.5, 0.25, 0.25], atol=1e-6)
    slopes = jax.jacfwd(shares, argnums=1)(corners, place)
    expected = [[-0.5, -0.25, 0], [0.5, 0, 0], [0, 0.25, 0]]
    np.testing.assert_allclose(slopes, expected, atol=1e-6)


def ring_scene(vertices) -> sg.Scene:
    mesh = sg.TriangleMesh(vertices, torus(24, 12)[1], smooth=False)
    place = sg.Similarity([0.3, 0.0, 0.2], [0.9, 0.1, -0.2, 0.3], 1.3)
    return sg.Scene(sg.Group(ring=sg.Transformed(sg.Surface(mesh, [1.0, 1, 1]), place)))


@pytest.mark.slow
def test_distances_are_differentiable_under_jit_and_vmap():
    """By the vertices of a moved mesh, the origins and the directions, in float64."""
    draw = np.random.default_rng(1)
    with jax.enable_x64(True):
        vertices = jnp.asarray(torus(24, 12)[0])
        origins = jnp.asarray(draw.uniform(-1, 1, (2, 40, 3)) + [0, 0, 4.0])
        targets = draw.uniform(-0.2, 0.2, (2, 40, 3)) + [1.3, 0.0, 0.2]
        directions = jnp.asarray(targets) - origins
        weights = jnp.asarray(draw.normal(size=(2, 40)))

        @jax.jit
        def loss(vertices, origins, directions):
            scene = ring_scene(vertices)
            cast = jax.vmap(lambda o, d: sg.cast_rays(scene, o, d).t)
            t = cast(origins, directions)
            hit = jnp.isfinite(t)
            return jnp.sum(jnp.where(hit, weights * jnp.where(hit, t, 0) ** 2, 0)), jnp.sum(hit)

        values = vertices, origins, directions
        slopes, hits = jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))(*values)
        assert hits > 40
        for place, slope in enumerate(slopes):
            field = jnp.asarray(draw.normal(size=slope.shape))
            step = 1e-7
            ends = [
                loss(*values[:place], values[place] + s * field, *values[place + 1 :])[0]
                for s in (step, -step)
            ]
            numeric = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(jnp.sum(slope * field), numeric, rtol=1e-5)


@pytest.mark.slow
def test_no_line_passes_between_faces():
    vertices, faces = icosphere(2)
    scene = sg.Scene(sg.Group(m=sg.Surface(sg.TriangleMesh(vertices, faces), [1.0, 1, 1])))
    middles = (vertices[faces] + vertices[np.roll(faces, 1, axis=1)]).reshape(-1, 3) / 2
    inside = jnp.asarray(np.concatenate([middles, vertices]), jnp.float32)
    hits = sg.cast_rays(scene, jnp.zeros_like(inside), inside)
    np.testing.assert_allclose(hits.t, 1, rtol=1e-5)


def test_near_far_and_footprints():
    ball = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere([0.0, 0.0, 3.0]), [1.0, 0.0, 0.0])))
    origin, up = jnp.zeros((1, 3)), jnp.array([[0.0, 0.0, 1.0]])
    sides = 0.01 * jnp.eye(2, 3)[None]
    assert sg.cast_rays(ball, origin, up).t[0] == pytest.approx(2)
    assert sg.cast_rays(ball, origin, up, near=2.5).t[0] == pytest.approx(4)
    assert jnp.isinf(sg.cast_rays(ball, origin, up, far=1.9).t[0])
    hit = sg.cast_rays(ball, origin, up, footprints=sides)
    np.testing.assert_allclose(hit.d_point[0], 2 * sides[0], atol=1e-4)
    np.testing.assert_allclose(hit.coverage, 1, atol=1e-6)


def test_rays_that_are_none_are_refused():
    ball = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), [1.0, 0.0, 0.0])))
    one = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="`directions` must not be zero; row 1 is"):
        sg.cast_rays(ball, one, one.at[1].set(0))
    with pytest.raises(ValueError, match="`origins` must be finite"):
        sg.cast_rays(ball, one.at[0, 1].set(jnp.nan), one)
