import abc

import jax.numpy as jnp

from .._typing import Scalar
from ..numerics import AbstractModule, safe_divide
from ._gaussian import Gaussian
from ._ray import Ray


class AbstractBeam(AbstractModule):
    """How wide a ray is: turns the part between `t0` and `t1` into a Gaussian."""

    @abc.abstractmethod
    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        """The Gaussian with the moments of a section of the ray.

        **Arguments:**

        - `ray`: one ray.
        - `t0`, `t1`: the ends of the section, in `t`.

        **Returns:**

        The Gaussian, in the ray's frame.
        """


class ConeBeam(AbstractBeam):
    """As wide as the pixel's footprint, which is linear in `t`.

    For a pinhole camera this is mip-NeRF's conical frustum; for an orthographic one a cylinder.
    The squared radius is a quadratic in `s = t - mid`; all moments are exact, in a form that
    does not cancel for short sections.

    **Source:** generalises mip-NeRF (Barron et al. 2021), equation 7.
    """

    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        mid, half = (t0 + t1) / 2, (t1 - t0) / 2
        q0, q1, q2 = _squared_radius(ray, mid)
        square = half**2
        area = q0 + q2 * square / 3
        shift = safe_divide(q1 * square / 3, area)
        second = square * (1 / 3 + safe_divide(q2 * square * (4 / 45), area))
        mean_square = q0**2 + (q1**2 + 2 * q0 * q2) * square / 3 + q2**2 * square**2 / 5
        across = safe_divide(mean_square, area) / 4
        return Gaussian(ray.at(mid + shift), ray.direction, second - shift**2, across)


class CylinderBeam(AbstractBeam):
    """As wide as the cone is at `t = 1`, everywhere: what mip-NeRF uses with NDC rays.

    **Source:** `cylinder_to_gaussian` of the published mip-NeRF code.
    """

    def __call__(self, ray: Ray, t0: Scalar, t1: Scalar) -> Gaussian:
        along = (t1 - t0) ** 2 / 12
        return Gaussian(ray.at((t0 + t1) / 2), ray.direction, along, ray.radius**2 / 4)


def _squared_radius(ray: Ray, mid: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Coefficients in `s` of the squared radius at `mid + s`: a third of the mean squared step."""
    at_mid = ray.d_origin + mid * ray.d_direction
    return (
        jnp.sum(at_mid * at_mid) / 6,
        jnp.sum(at_mid * ray.d_direction) / 3,
        jnp.sum(ray.d_direction**2) / 6,
    )
