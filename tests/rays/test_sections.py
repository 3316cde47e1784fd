"""Sections of a ray become Gaussians: the published numbers, and Monte Carlo."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import ConeBeam, CylinderBeam, Gaussian, Ray
from support.helpers import (
    assert_close,
    assert_finite_gradients,
    assert_gradients,
    covariances,
    golden,
    golden_rays,
    random_ray,
    sections,
)


cone, cylinder = eqx.filter_jit(ConeBeam()), eqx.filter_jit(CylinderBeam())
BEAMS = {"cone": ConeBeam(), "cylinder": CylinderBeam()}
KINDS = ("diag", "full")


def rays_from_the_origin(directions, radii):
    def ray(direction, radius):
        one = jnp.ones_like(radius)
        return Ray.from_radius(jnp.zeros_like(direction), direction, direction, radius, one, one)

    return jax.jit(jax.vmap(ray))(directions, radii[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", BEAMS)
def test_cast_rays(beam, kind):
    data, name = golden("mip_math"), f"cast_rays.{beam}.{kind}"
    edges = data["t_vals"]
    cast = sections(BEAMS[beam], golden_rays(data), edges[:, :-1], edges[:, 1:])
    assert_close(cast.mean, data[f"{name}.means"])
    assert_close(covariances(cast, kind), data[f"{name}.covs"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "tolerance"), [("stable", 1e-5), ("unstable", 1e-4)])
def test_wide_frustums(form, tolerance, kind):
    data, name = golden("mip_math"), f"frustum_wide.{form}.{kind}"
    rays = rays_from_the_origin(data["frustum_wide.in_d"], data["frustum_wide.in_base_radius"])
    cast = sections(ConeBeam(), rays, data["frustum_wide.in_t0"], data["frustum_wide.in_t1"])
    assert_close(cast.mean, data[f"{name}.mean"], tolerance)
    assert_close(covariances(cast, kind), data[f"{name}.cov"], tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_wide_cylinders(kind):
    data, name = golden("mip_math"), f"cylinder_wide.{kind}"
    rays = rays_from_the_origin(data["frustum_wide.in_d"], data["frustum_wide.in_base_radius"])
    cast = sections(CylinderBeam(), rays, data["frustum_wide.in_t0"], data["frustum_wide.in_t1"])
    assert_close(cast.mean, data[f"{name}.mean"])
    assert_close(covariances(cast, kind), data[f"{name}.cov"])


def test_thin_frustums_do_not_cancel():
    data, name = golden("mip_math"), "frustum_thin.stable.diag"
    rays = rays_from_the_origin(data["rays.directions"], data["rays.radii"])
    cast = sections(ConeBeam(), rays, data["frustum_thin.in_t0"], data["frustum_thin.in_t1"])
    assert_close(cast.mean, data[f"{name}.mean"])
    assert_close(covariances(cast, "diag"), data[f"{name}.cov"])


def test_a_scalar_radius_survives_the_footprint():
    data = golden("mip_math")
    assert_close(golden_rays(data).radius, data["rays.radii"][:, 0], 1e-6)


def assert_moments(gaussian: Gaussian, points, weights, tolerance):
    """Mean and covariance of weighted points, within `tolerance` of the section's size."""
    mean = np.average(points, axis=0, weights=weights)
    covariance = np.cov(points.T, aweights=weights)
    size = np.sqrt(np.trace(covariance))
    assert_close(gaussian.mean, mean, 0, tolerance * size)
    assert_close(gaussian.covariance(), covariance, 0, tolerance * size**2)


@pytest.mark.parametrize("seed", range(3))
def test_cone_has_the_moments_of_its_discs(seed, x64):
    """Points spread evenly over a solid made of discs, of any quadratic squared radius."""
    ray, rng = random_ray(seed, spread=0.5), np.random.default_rng(seed)
    t = rng.uniform(1, 3, 1_000_000)
    step = ray.d_origin + t[:, None, None] * ray.d_direction
    radius = np.sqrt(np.sum(step**2, axis=(1, 2)) / 6)
    angle, share = rng.uniform(0, 2 * np.pi, t.size), np.sqrt(rng.uniform(size=t.size))
    basis = np.linalg.svd(ray.direction[None])[2][1:]
    across = (radius * share)[:, None] * (np.stack([np.cos(angle), np.sin(angle)], -1) @ basis)
    points = ray.origin + t[:, None] * ray.direction + across
    assert_moments(cone(ray, jnp.asarray(1.0), jnp.asarray(3.0)), points, radius**2, 4e-3)


@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
def test_cone_has_the_moments_of_a_square_pixel(kind, x64):
    """The middle pixel's own solid, made from lines through its points."""
    pose = sg.Pose.look_at([3, 1, 2], [0, 0, 0], [0, 0, 1])
    cameras = {"perspective": sg.PerspectiveCamera, "orthographic": sg.OrthographicCamera}
    camera = cameras[kind](pose, 2.0, 3, 3)
    rng = np.random.default_rng(0)
    pixels = rng.uniform(1, 2, (400_000, 2))
    t = rng.uniform(2, 5, len(pixels))
    origins, directions = map(np.asarray, jax.jit(jax.vmap(camera.line))(pixels))
    density = t**2 if kind == "perspective" else np.ones_like(t)
    ray = eqx.filter_jit(camera.ray)(jnp.asarray([1.5, 1.5]))
    section = cone(ray, jnp.asarray(2.0), jnp.asarray(5.0))
    assert_moments(section, origins + t[:, None] * directions, density, 4e-3)


def test_orthographic_cone_is_a_cylinder():
    camera = sg.OrthographicCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 2.0, 8, 8)
    ray, t0, t1 = (
        eqx.filter_jit(camera.ray)(jnp.array([2.5, 6.5])),
        jnp.asarray(1.0),
        jnp.asarray(4.0),
    )
    wide, even = cone(ray, t0, t1), cylinder(ray, t0, t1)
    assert_close(wide.covariance(), even.covariance(), 1e-6)
    assert_close(wide.mean, even.mean, 1e-6)
    assert float(wide.across) == pytest.approx((2 / 8) ** 2 / 12)
    assert float(wide.along) == pytest.approx(3**2 / 12)


@pytest.mark.parametrize("beam", BEAMS)
def test_gradients(beam, x64):
    assert_gradients(BEAMS[beam], random_ray(0), jnp.asarray(1.5), jnp.asarray(2.0))


@pytest.mark.parametrize("beam", BEAMS)
def test_gradients_are_finite_for_degenerate_sections(beam):
    """No footprint, one whose square underflows, no length, no direction."""
    radii, lengths, heights = [0.0, 1e-30, 1e-20, 1e-10, 1e-3], [0.0, 1e-6, 0.5], [0.0, -1.0]
    radius, length, height = map(
        jnp.ravel, jnp.meshgrid(*map(jnp.array, (radii, lengths, heights)))
    )

    def moments(radius, length, height):
        direction, near = jnp.zeros(3).at[2].set(height), jnp.asarray(2.0)
        ray = Ray.from_radius(jnp.ones(3), direction, direction, radius, near, near)
        gaussian = BEAMS[beam](ray, near, near + length)
        return gaussian.mean, gaussian.variance(), gaussian.covariance()

    assert_finite_gradients(jax.vmap(moments), radius, length, height)


def test_section_of_no_length_is_a_disc():
    ray, t = random_ray(1), jnp.asarray(2.0)
    gaussian = ConeBeam()(ray, t, t)
    step = ray.d_origin + t * ray.d_direction
    assert_close(gaussian.mean, ray.at(t))
    assert float(gaussian.along) == 0
    assert_close(gaussian.across, jnp.sum(step**2) / 24)
