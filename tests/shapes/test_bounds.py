"""Bounds of shapes; cones of pixels against balls, and against the boxes of the tree."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.lights._base import rays_to
from scenegraph.rays import Ray
from scenegraph.shapes import bounding_ball, cone_touches
from scenegraph.visibility._walk import ball_margin, cone_of, may_touch


POSE = sg.Pose.look_at([0.0, -3.0, 1.5], [0.0, 0.0, 0.4], [0.0, 0.0, 1.0])
CAMERAS = {
    "perspective": sg.PerspectiveCamera(POSE, 30.0, width=16, height=16),
    "orthographic": sg.OrthographicCamera(POSE, 3.0, 16, 16),
    "fisheye": sg.FisheyeCamera(POSE, [8.0, 8.0], 16, 16, k1=0.1),
    "panorama": sg.PanoramaCamera(POSE, 16, 16),
}


def camera_rays(camera):
    corner = jnp.stack(jnp.meshgrid(*[jnp.arange(2)] * 2), axis=-1).reshape(-1, 1, 2) * 8
    inside = jnp.stack(jnp.meshgrid(*[jnp.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    return jax.vmap(jax.vmap(camera.ray))((corner + inside).astype(float))


def shadow_rays():
    """Rays from grazed and from nearby points, which narrow to a lamp."""
    draw = np.random.default_rng(1)
    points = draw.uniform(-2, 2, (16, 1, 3)) + draw.uniform(-0.2, 0.2, (16, 64, 3))
    sides = draw.uniform(-0.2, 0.2, (16, 64, 2, 3)) * [1.0, 1.0, 0.02]
    lamp = jnp.array([1.0, 1.0, 5.0])
    one = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    return jax.vmap(jax.vmap(one))(jnp.asarray(points), jnp.asarray(sides))


def box_about(ball):
    return jnp.concatenate([ball.center - ball.radius, ball.center + ball.radius])


@jax.jit
def answers(rays, balls):
    """Whether rays may touch balls, and whether they may touch the boxes about them."""
    over = lambda test: jax.vmap(jax.vmap(lambda ray: jax.vmap(lambda x: test(ray, x))(balls)))
    in_box = lambda ray, ball: may_touch(cone_of(ray, ball_margin), box_about(ball), jnp.inf)
    return over(cone_touches)(rays), over(in_box)(rays)


@jax.jit
def is_hit(rays, balls):
    """Whether one of 25 lines from all over a pixel meets a ball between near and far."""

    def by_line(ray, ball, shift):
        origin, way = ray.origin + shift @ ray.d_origin, ray.direction + shift @ ray.d_direction
        t = jnp.clip(jnp.dot(ball.center - origin, way) / jnp.dot(way, way), ray.near, ray.far)
        return jnp.linalg.norm(origin + t * way - ball.center) < ball.radius

    shifts = jnp.stack(jnp.meshgrid(*[jnp.linspace(-0.5, 0.5, 5)] * 2), -1).reshape(-1, 2)
    any_line = lambda ray, ball: jnp.any(jax.vmap(lambda x: by_line(ray, ball, x))(shifts))
    each = lambda ray: jax.vmap(lambda ball: any_line(ray, ball))(balls)
    return jax.vmap(jax.vmap(each))(rays)


@pytest.mark.parametrize("name", [*CAMERAS, "shadow"])
def test_what_a_pixel_touches_is_in_boxes_that_it_touches(name):
    draw = np.random.default_rng(0)
    centers, radii = draw.uniform(-3, 3, (200, 3)), 10 ** draw.uniform(-3, 0.5, 200)
    rays = shadow_rays() if name == "shadow" else camera_rays(CAMERAS[name])
    centers[0] = np.asarray(rays.origin[0, 0])
    balls = sg.transforms.Ball(jnp.asarray(centers), jnp.asarray(radii))
    touched, boxed = map(np.asarray, answers(rays, balls))
    hit = np.asarray(is_hit(rays, balls))
    assert not np.any(touched & ~boxed)
    assert boxed.mean() < 0.5
    assert not np.any(hit & ~touched)
    assert 0.01 < hit.mean() and touched.mean() < 2 * hit.mean() + 0.05


def random_rays(kind, width, rays, draw):
    """Two hundred sets of rays, and how much a pixel's sides turn or are apart."""
    shape = (200, rays, 3)
    sides = draw.normal(size=(200, rays, 2, 3)) * width
    origins, none = draw.uniform(-3, 3, (200, 1, 3)) + np.zeros(shape), np.zeros_like(sides)
    if kind == "lamp":
        points = origins + draw.uniform(-0.2, 0.2, shape)
        return points, [1.0, 1.0, 5.0] - points, sides * [1, 1, 0.1], -sides * [1, 1, 0.1], 1.0
    ways = draw.normal(size=(200, 1, 3)) + draw.normal(size=shape) * min(width, 0.5)
    if kind == "camera":
        return origins, ways, none, sides, 1e3
    return origins + draw.normal(size=shape) * width, ways, sides, none, 1e3


@pytest.mark.parametrize("rays", [1, 8])
@pytest.mark.parametrize("width", [1e-3, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("kind", ["lamp", "camera", "parallel"])
def test_boxes_of_what_rays_of_any_width_touch_are_touched(kind, width, rays, x64):
    draw = np.random.default_rng(0)
    origins, ways, *sides, far = random_rays(kind, width, rays, draw)
    bounds = np.zeros((200, rays)), np.full((200, rays), far)
    many = Ray(*map(jnp.asarray, (origins, ways, ways, *sides, *bounds)))
    centers, radii = draw.uniform(-3, 3, (200, 3)), 10 ** draw.uniform(-3, 0.5, 200)
    touched, boxed = answers(many, sg.transforms.Ball(jnp.asarray(centers), jnp.asarray(radii)))
    assert not np.any(np.asarray(touched & ~boxed))
    assert np.any(np.asarray(touched)) and (width > 0.1 or not np.all(np.asarray(touched)))


@pytest.mark.parametrize("width", [0.05, 0.3, 1.0])
def test_the_far_corners_of_wide_pixels_are_touched(width):
    """A corner of a footprint is farther away than its middle."""
    across = width * jnp.eye(2, 3)
    down, zeros = jnp.array([0.0, 0.0, -1.0]), jnp.zeros((2, 3))
    ray = Ray(jnp.zeros(3), down, down, zeros, across, jnp.asarray(0.0), jnp.asarray(1.0))
    ends = down + jnp.array([[x, y] for x in (-0.5, 0.5) for y in (-0.5, 0.5)]) @ across
    for end in 0.9999 * ends:
        ball = sg.transforms.Ball(end, jnp.asarray(1e-5))
        assert cone_touches(ray, ball) and may_touch(
            cone_of(ray, ball_margin), box_about(ball), jnp.inf
        )


def test_a_ball_everywhere_and_one_that_is_not_finite_are_touched():
    ray = CAMERAS["perspective"].ray(jnp.array([8.0, 8.0]))
    for radius in (jnp.inf, jnp.nan):
        assert cone_touches(ray, sg.transforms.Ball(jnp.zeros(3), jnp.asarray(radius)))


class Far(sg.shapes.AbstractSmoothShape, sg.shapes.AbstractBounded):
    """Something beside the view, whose radius someone may have computed wrongly."""

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = False
    ball: sg.Sphere
    radius: float

    def bounding_ball(self):
        return sg.transforms.Ball(self.ball.center, jnp.asarray(self.radius))

    def cross(self, ray):
        return self.ball.cross(ray)

    def normal_at(self, point):
        return self.ball.normal_at(point)

    def uv_at(self, point):
        return self.ball.uv_at(point)


def test_impossible_bounds_hide_nothing():
    ray = CAMERAS["perspective"].ray(jnp.array([1.0, 1.0]))
    for radius, touched in [(0.1, False), (-1.0, True), (-jnp.inf, True), (jnp.nan, True)]:
        far = Far(sg.Sphere([40.0, 0.0, 0.0]), radius)
        assert cone_touches(ray, bounding_ball(far)) == touched
