"""Microfacets of GGX: the mirrors that a rough surface is made of."""

import jax.numpy as jnp

from .._typing import Scalar, Vector
from ..numerics import dot, safe_divide, safe_normalise


# The least cosine to the eye: at zero, the model divides by zero.
LEAST_COSINE = 1e-4
# Bumps lose a light over the last part of its cosine with the surface itself.
_DUSK = 0.05


def facets(alpha: Scalar, normal: Vector, half: Vector) -> Scalar:
    """Returns `D`, the density of the facets whose normal is `half`, of any length."""
    # D = (a |h|^2 / (|n x h|^2 + (a n.h)^2))^2 / pi, for an h of any length. The sine comes from
    # the cross product: from the cosine it would be lost in rounding.
    across, along = jnp.cross(normal, half), dot(normal, half)
    spread = dot(across, across) + (alpha * along) ** 2
    return safe_divide(alpha * dot(half, half), spread) ** 2 / jnp.pi


def visibility(alpha: Scalar, cosine: Scalar, seen: Scalar) -> Scalar:
    """Returns `G / (4 n.l n.v)`, the part of the facets that is both lit and seen."""

    def spread(x: Scalar) -> Scalar:
        return jnp.sqrt(alpha**2 + (1 - alpha**2) * x**2)

    # G / (4 n.l n.v) = 1 / (2 (n.l s(n.v) + n.v s(n.l))), with s(x) = sqrt(a^2 + (1 - a^2) x^2)
    return 1 / (2 * (cosine * spread(seen) + seen * spread(cosine)))


def facet_density(alpha: Scalar, normal: Vector, eye: Vector, light: Vector) -> Scalar:
    """Returns the density of light that a facet mirrors which the eye sees."""
    # D G1(v) / (4 n.v) = D / (2 (n.v + s(n.v))), with s(x) = sqrt(a^2 + (1 - a^2) x^2)
    seen = dot(normal, eye)
    spread = jnp.sqrt(alpha**2 + (1 - alpha**2) * seen**2)
    return facets(alpha, normal, eye + light) / (2 * (seen + spread))


def raise_eye(normal: Vector, eye: Vector) -> Vector:
    """Returns the direction to the eye, raised above the horizon of a bump that looks away."""
    lift = jnp.maximum(LEAST_COSINE - dot(normal, eye), 0)
    return safe_normalise(eye + lift * normal)


def height_of(normal: Vector, light: Vector) -> Scalar:
    """Returns the part of a light that is above the surface itself."""
    return jnp.clip(dot(light, normal) / _DUSK, 0, 1)
