"""Gradients of meshes against finite differences of hard visibility, and rays from inside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.hard_surfaces as hard
from support.hard_triangles import flat_picture, icosphere, torus


pytestmark = pytest.mark.slow

SIZE, SAMPLES = 32, 64
UP = [0.0, 0.0, 1.0]
LAMP, POWER = np.array([0.6, -0.4, 5.0]), 20.0
FLOOR_VIEW = [0.2, -2.5, 1.6], [-0.15, 0.1, 0.0], UP, 0.45
BALL, RING = icosphere(1), torus(16, 8)


def blocks(x):
    """Means over the samples of every pixel."""
    return x.reshape(SIZE, SAMPLES, SIZE, SAMPLES, -1).mean((1, 3))


def lines(camera):
    """Directions through the middles of all pixels, with rows first."""
    ahead = np.subtract(camera.target, camera.eye)
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, camera.up) / np.linalg.norm(np.cross(ahead, camera.up))
    focal = camera.width / 2 / np.tan(camera.fov / 2)
    x, y = np.meshgrid(*[(np.arange(camera.width) + 0.5 - camera.width / 2) / focal] * 2)
    return ahead + x[..., None] * right + y[..., None] * np.cross(ahead, right)


def normals_of(corners):
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


class Outline:
    """A white ball over black."""

    def __init__(self, start, faces):
        self.start, self.faces = start, faces

    place = [0.3, -4.0, 1.0], [0.0] * 3, UP, 0.8

    def scene(self, vertices):
        mesh = sg.TriangleMesh(vertices, self.faces)
        return sg.Scene(sg.Group(mesh=sg.Surface(mesh, [1.0, 1.0, 1.0])))

    def truth(self, vertices):
        white = np.ones((len(self.faces), 3))
        camera = hard.Camera(*self.place, SIZE, SIZE)
        return flat_picture(vertices[self.faces], white, camera, SAMPLES)


class BeforeItself:
    """A ring before itself; the colours of flat faces are their normals, which change, too."""

    def __init__(self, start, faces):
        self.start, self.faces = start, faces

    # Not from x = 0, where edges lie on the sides of pixels and have two derivatives.
    place = [0.1, -3.5, 1.2], [0.0] * 3, UP, 0.8

    def scene(self, vertices):
        mesh = sg.TriangleMesh(vertices, self.faces, smooth=False)
        return sg.Scene(sg.Group(mesh=sg.Surface(mesh, sg.Normals())))

    def truth(self, vertices):
        corners = vertices[self.faces]
        camera = hard.Camera(*self.place, SIZE, SIZE)
        return flat_picture(corners, normals_of(corners) / 2 + 0.5, camera, SAMPLES)


class Shadow:
    """The shadow of a ball, which is out of the picture, on a floor."""

    start, faces = 0.4 * BALL[0] + [0.0, 0.0, 1.4], BALL[1]
    place = FLOOR_VIEW

    def scene(self, vertices):
        mesh = sg.TriangleMesh(vertices, self.faces)
        white = sg.Lambert([1.0, 1.0, 1.0])
        return sg.Scene(
            sg.Group(
                mesh=sg.Surface(mesh, white),
                floor=sg.Surface(sg.Plane(), white),
                lamp=sg.PointLight(LAMP, [POWER] * 3),
            )
        )

    def truth(self, vertices):
        # Every corner where its shadow falls on z = 0.
        away = vertices - LAMP
        fallen = LAMP + away * (-LAMP[2] / away[:, 2:])
        camera = hard.Camera(*self.place, SIZE * SAMPLES, SIZE * SAMPLES)
        dark = flat_picture(fallen[self.faces], np.ones((len(self.faces), 3)), camera, 1)
        ways = lines(camera)
        points = camera.eye + ways * (-camera.eye[2] / ways[..., 2:])
        squared = np.sum((points - LAMP) ** 2, axis=-1, keepdims=True)
        # 1 / pi of the irradiance I cos / r^2, with cos = height / r
        light = POWER * LAMP[2] / squared**1.5 / np.pi
        return blocks(light * (1 - dark))


def smooth_fields(vertices, rng, count):
    for _ in range(count):
        turn, shift = rng.normal(size=(3, 3)), rng.normal(size=3)
        yield np.sin(vertices @ turn + shift) * rng.normal(size=3)


def single_vertices(vertices, rng, count):
    for vertex in rng.permutation(len(vertices))[:count]:
        field = np.zeros_like(vertices)
        field[vertex] = rng.normal(size=3)
        yield field


CASES = {
    "smooth, outline": (Outline(*BALL), smooth_fields, 0.005),
    "smooth, before itself": (BeforeItself(*RING), smooth_fields, 0.005),
    # A dozen faces a pixel, and more at its rim.
    "smooth, outline of many": (Outline(*icosphere(4)), smooth_fields, 0.005),
    "smooth, shadow": (Shadow(), smooth_fields, 0.005),
    "single vertices, outline": (Outline(*BALL), single_vertices, 0.005),
    "single vertices, shadow": (Shadow(), single_vertices, 0.02),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_hard_visibility(name):
    case, fields, step = CASES[name]
    camera, rng = sg.PerspectiveCamera.look_at(*case.place, SIZE, SIZE), np.random.default_rng(5)
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    target = np.sin(5 * x + 3 * y)[..., None]
    loss = lambda rgb: ((rgb - target) ** 2).sum()
    draw = lambda v: sg.render(case.scene(v), camera).rgb
    value, gradient = jax.jit(jax.value_and_grad(lambda v: loss(draw(v))))(jnp.asarray(case.start))
    np.testing.assert_allclose(value, loss(case.truth(case.start)), rtol=0.01)
    slope = lambda field, step: np.subtract(*ends_of(case, loss, field, step)) / (2 * step)
    directions = list(fields(case.start, rng, 20))
    expected = np.array([slope(field, step) for field in directions])
    usual = np.sqrt(np.mean(expected**2))
    # The reference itself: two steps agree.
    longer = [slope(field, 2 * step) for field in directions[:5]]
    assert np.median(np.abs(longer - expected[:5])) < 0.01 * usual
    errors = np.abs([np.sum(gradient * field) for field in directions] - expected) / usual
    assert np.median(errors) < 0.03, errors
    assert np.quantile(errors, 0.95) < 0.1, errors


def ends_of(case, loss, field, step):
    return [loss(case.truth(case.start + sign * step * field)) for sign in (1, -1)]


def test_a_million_cones_from_within_a_closed_mesh_meet_it():
    vertices, faces = icosphere(2)
    mesh = sg.Surface(sg.TriangleMesh(vertices, faces), [1.0, 1.0, 1.0])
    scene, rng = sg.Scene(sg.Group(mesh=mesh)), np.random.default_rng(0)
    most, total = 0.0, 0
    for _ in range(4):
        eye, away, up = rng.uniform(-0.4, 0.4, 3), *rng.normal(size=(2, 3))
        pose = sg.PerspectiveCamera.look_at(eye, eye + away, up, 1.0, 8, 8).pose
        image = sg.render(scene, sg.PanoramaCamera(pose, 512, 512))
        most = max(most, float(jnp.max(jnp.abs(image.alpha - 1))))
        total += image.alpha.size
    assert total > 1_000_000
    assert most < 1e-5
