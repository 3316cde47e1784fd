import abc

import jax.numpy as jnp

from .._typing import Scalar
from ..numerics import AbstractModule, safe_divide
from ._gaussian import Gaussian
from ._ray import Ray


class AbstractBeam(AbstractModule):
    """The shape of a ray's cross-section, which turns a section of the ray into a Gaussian."""

    @abc.abstractmethod
    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        """Computes the Gaussian with the moments of a section of the ray."""


class ConeBeam(AbstractBeam):
    """A cone as wide as the pixel's footprint, which is linear in `t`.

    For a pinhole camera this is mip-NeRF's conical frustum; for an orthographic one a cylinder.
    The squared radius is a quadratic in `s = t - mid`; all moments are exact, in a form that
    does not cancel for short sections.

    **Source:** generalises mip-NeRF (Barron et al. 2021), equation 7.
    """

    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        mid, half = (t0 + t1) / 2, (t1 - t0) / 2
        # Squared radius r^2(s) = q0 + q1 s + q2 s^2: a sixth of the pixel's squared sides.
        # Of equal variances: a disk has r^2 / 4 along an axis, a square of side s has s^2 / 12.
        sides = ray.d_origin + mid * ray.d_direction
        q0 = jnp.sum(sides * sides) / 6
        q1 = jnp.sum(sides * ray.d_direction) / 3
        q2 = jnp.sum(ray.d_direction**2) / 6
        # With moments m_n, the integrals of s^n r^2(s) over [-h, h] by that of r^2(s):
        # m_1 = q1 h^2 / 3 / a and m_2 = h^2 / 3 + 4 q2 h^4 / 45 / a, where a = q0 + q2 h^2 / 3.
        # For r(t) = r t this is equation 7: m_1 = 2 mid h^2 / (3 mid^2 + h^2).
        square = half**2
        area = q0 + q2 * square / 3
        shift = safe_divide(q1 * square / 3, area)
        second = square * (1 / 3 + safe_divide(q2 * square * (4 / 45), area))
        # A disk of radius r has the variance r^2 / 4, weighted by its area: int r^4 / int r^2 / 4.
        mean_square = q0**2 + (q1**2 + 2 * q0 * q2) * square / 3 + q2**2 * square**2 / 5
        across = safe_divide(mean_square, area) / 4
        return Gaussian(ray.at(mid + shift), ray.direction, second - shift**2, across)


class CylinderBeam(AbstractBeam):
    """A cylinder with the cone's radius at `t = 1`, which mip-NeRF uses with NDC rays.

    **Source:** `cylinder_to_gaussian` of the published mip-NeRF code.
    """

    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        # A uniform interval has the variance (t1 - t0)^2 / 12, a disk r^2 / 4.
        along = (t1 - t0) ** 2 / 12
        return Gaussian(ray.at((t0 + t1) / 2), ray.direction, along, ray.radius**2 / 4)
