"""Rays keep their `t` in every frame."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import ConeBeam, overlap, Ray, Section, Span, transform_ray
from support.helpers import assert_close, assert_finite_gradients, random_ray


TRANSFORMS = {
    "similarity": sg.Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], 2.5),
    "affine": sg.Affine([[1.0, 0.4, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 0.5]], [0, 1, 0]),
    "pose": sg.Pose(jnp.eye(4), [0.3, -1, 2, 0.5, -0.7, 0.1]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_t_is_the_same_in_every_frame(name):
    transform, ray = TRANSFORMS[name], random_ray(0)
    moved = transform_ray(transform, ray)
    for t in (0.0, 1.0, 2.7):
        assert_close(moved.at(t), transform.point(ray.at(t)), 1e-6)
    assert (moved.near, moved.far) == (ray.near, ray.far)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_footprint_moves_along(name):
    """A neighbouring pixel's ray, moved, is the neighbour of the moved ray."""
    transform, ray = TRANSFORMS[name], random_ray(0)
    moved = transform_ray(transform, ray)
    for axis in (0, 1):
        neighbour = ray.at(2.0) + ray.d_origin[axis] + 2.0 * ray.d_direction[axis]
        expected = moved.at(2.0) + moved.d_origin[axis] + 2.0 * moved.d_direction[axis]
        assert_close(transform.point(neighbour), expected, 1e-6)


def test_view_keeps_its_length():
    ray = random_ray(0)
    moved = transform_ray(sg.Similarity(scale=3), ray)
    assert_close(moved.view, ray.view, 1e-6)


def test_there_and_back():
    ray = random_ray(0)
    for transform in TRANSFORMS.values():
        back = transform_ray(transform.inverse(), transform_ray(transform, ray))
        for name in ("origin", "direction", "view", "d_origin", "d_direction"):
            assert_close(getattr(back, name), getattr(ray, name), 1e-5)


def test_radius_of_no_footprint_has_a_finite_gradient():
    ray = random_ray(0, spread=0.0)
    assert float(ray.radius) == 0
    assert_finite_gradients(lambda ray: ray.radius, ray)


def test_radius_of_a_similar_ray_scales():
    ray = random_ray(0)
    assert_close(transform_ray(sg.Similarity(scale=3), ray).radius, 3 * ray.radius, 1e-6)


@pytest.mark.parametrize(
    ("near", "far", "share"),
    [(0, 9, 1), (3, 9, 0.5), (0, 2.5, 0.25), (2.5, 3, 0.25), (5, 9, 0), (3, 3, 0), (9, 0, 0)],
)
def test_overlap(near, far, share):
    ray, t0, t1 = random_ray(0), jnp.asarray(2.0), jnp.asarray(4.0)
    section = Section(ConeBeam()(ray, t0, t1), t0, t1)
    assert float(overlap(section, Span(near, far))) == pytest.approx(share)


@pytest.mark.parametrize("t1", [2.0, 4.0])
@pytest.mark.parametrize(("near", "far"), [(3, 9), (3, 3), (2, 2)])
def test_overlap_has_finite_gradients(t1, near, far):
    gaussian = ConeBeam()(random_ray(0), jnp.asarray(2.0), jnp.asarray(4.0))

    def share(t0, t1, span):
        return overlap(Section(gaussian, t0, t1), span)

    assert_finite_gradients(share, jnp.asarray(2.0), jnp.asarray(t1), Span(near, far))


def test_wrong_shapes_are_refused():
    zeros = jnp.zeros((2, 3))
    with pytest.raises(TypeError, match=r"Ray\.direction.*\[2\]"):
        Ray(zeros[0], jnp.zeros(2), zeros[0], zeros, zeros, 0.0, 1.0)


def test_rays_of_one_batch_have_one_size():
    with pytest.raises(TypeError, match=r"Ray\.far"):
        Ray(*np.zeros((3, 5, 3), np.float32), *jnp.zeros((2, 5, 2, 3)), jnp.zeros(5), jnp.ones(4))


def test_a_batch_of_rays_is_a_ray():
    rays = jax.vmap(lambda _: random_ray(0))(jnp.arange(4))
    assert rays.radius.shape == (4,)
