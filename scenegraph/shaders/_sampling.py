"""Random directions in which surfaces scatter light, and the densities of these."""

import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Scalar, Vector
from ..numerics import dot, safe_divide, safe_normalise, safe_sqrt
from ._material import ScatterSample


def cosine_direction(normal: Vector, uniform: Float[Array, "2"]) -> Vector:
    """Returns a unit vector above a surface, with density `n.l / pi`."""
    # Malley: a point of the unit disk, z = sqrt(1 - r^2) with r^2 = u.
    along, across = _turned(uniform[1])
    radius, height = safe_sqrt(uniform[0]), safe_sqrt(1 - uniform[0])
    return _in_frame(normal, radius * along, radius * across, height)


def lobe_direction(axis: Vector, exponent: Scalar, uniform: Float[Array, "2"]) -> Vector:
    """Returns a unit vector `l` with density `(n + 1) / (2 pi) max(axis.l, 0)^n`."""
    # cos = u^(1 / (n + 1))
    along, across = _turned(uniform[1])
    height = jnp.maximum(uniform[0], jnp.finfo(axis.dtype).tiny) ** (1 / (exponent + 1))
    radius = safe_sqrt((1 - height) * (1 + height))
    return _in_frame(axis, radius * along, radius * across, height)


def visible_facet(alpha: Scalar, normal: Vector, eye: Vector, uniform: Float[Array, "2"]) -> Vector:
    """Returns the normal of a facet of GGX, as often as the eye sees it.

    **Source:** Dupuy and Benyoub 2023, "Sampling Visible GGX Normals with Spherical Caps".
    """
    tangent, bitangent = tangent_frame(normal)
    # The eye, stretched: w = (a v_x, a v_y, v_z) / |.|, sees a half sphere instead of facets.
    upward = dot(normal, eye)
    local = jnp.stack([alpha * dot(tangent, eye), alpha * dot(bitangent, eye), upward])
    stretched = safe_normalise(local)
    # What a half sphere mirrors to w fills the cap z = 1 - u (1 + w_z) >= -w_z evenly.
    down = uniform[0] * (1 + stretched[2])
    along, across = _turned(uniform[1])
    radius = safe_sqrt(down * (2 - down))
    half = stretched + jnp.stack([radius * along, radius * across, 1 - down])
    return _in_frame(normal, alpha * half[0], alpha * half[1], jnp.maximum(half[2], 0))


def tangent_frame(normal: Vector) -> tuple[Vector, Vector]:
    """Returns two unit vectors at right angles to a normal, and to each other.

    **Source:** Duff et al. 2017, "Building an Orthonormal Basis, Revisited".
    """
    x, y, z = normal
    sign = jnp.where(z < 0, -1, 1).astype(z.dtype)
    a = -1 / (sign + z)
    b = x * y * a
    tangent = jnp.stack([1 + sign * x * x * a, sign * b, -sign * x])
    return tangent, jnp.stack([b, sign + y * y * a, -y])


def luminance(color: Color) -> Scalar:
    """Returns how bright a linear colour is."""
    red, green, blue = color
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def scatter_sample(
    direction: Vector, scatter: Color, density: Scalar, is_diffuse: Bool[Array, ""]
) -> ScatterSample:
    """Returns a direction with its density, and the weight `scatter / density`."""
    weight = safe_divide(scatter, jnp.broadcast_to(density, (3,)))
    return ScatterSample(direction, weight, density, jnp.zeros((), bool), is_diffuse)


def _turned(part: Scalar) -> tuple[Scalar, Scalar]:
    """Returns cosine and sine of a part of a full turn."""
    return jnp.cos(2 * jnp.pi * part), jnp.sin(2 * jnp.pi * part)


def _in_frame(normal: Vector, along: Scalar, across: Scalar, height: Scalar) -> Vector:
    """Returns the unit vector along one in the frame of a normal."""
    tangent, bitangent = tangent_frame(normal)
    return safe_normalise(along * tangent + across * bitangent + height * normal)
