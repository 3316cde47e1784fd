"""Sheen of cloth: fibres that stand up, and shine where they are seen from the side."""

import functools

import jax.numpy as jnp
import numpy as np

from .._typing import Float, Scalar, Vector
from ..numerics import dot
from ._split_sum import look_up_lobe


_POINTS, _PARTS = 24, 64
# A smoother sheen would be a line along the outline.
_SMOOTHEST = 0.07


def sheen_lobe(roughness: Scalar, normal: Vector, eye: Vector, light: Vector) -> Scalar:
    """Returns the BSDF of white sheen, for light and eye above the surface.

    **Source:** Estevez and Kulla 2017, "Production Friendly Microfacet Sheen BRDF" (`D`); Neubelt
    and Pettineo 2013, "Crafting a Next-Gen Material Pipeline for The Order: 1886" (shadowing).
    """
    # D = (2 + 1 / a) sin^(1 / a) / (2 pi), a = roughness^2, over 4 (n.l + n.v - n.l n.v)
    half = eye + light
    across = jnp.cross(normal, half)
    square, length = dot(across, across), dot(half, half)
    lies = (square > 0) & (length > 0)
    sine = jnp.log(jnp.where(lies, square, 1) / jnp.where(lies, length, 1)) / 2
    inverse = 1 / jnp.maximum(roughness, _SMOOTHEST) ** 2
    density = jnp.where(lies, (2 + inverse) / (2 * jnp.pi) * jnp.exp(inverse * sine), 0)
    lit, seen = (jnp.maximum(dot(normal, x), _LEAST_COSINE) for x in (light, eye))
    return density / (4 * (lit + seen - lit * seen))


_LEAST_COSINE = 1e-4


def sheen_part(roughness: Scalar, cosine: Scalar) -> Scalar:
    """Returns the part of light from one direction that white sheen reflects."""
    return look_up_lobe(_table(), roughness, cosine)[0]


@functools.lru_cache(maxsize=1)
def _table() -> Float[np.ndarray, "roughness seen 1"]:
    """Computes the reflected part by quadrature over directions of light."""
    axis = np.linspace(0, 1, _POINTS)
    seen = np.maximum(axis**2, _LEAST_COSINE)[:, None]
    # Heights in steps that are finer near the horizon: n.l = x^2.
    part = (np.arange(_PARTS) + 0.5) / _PARTS
    lit, around = (x.ravel() for x in np.meshgrid(part**2, np.pi * part))
    solid = 2 * np.sqrt(lit) * 2 * np.pi / _PARTS**2
    # h = v + l, with v = (sqrt(1 - v_z^2), 0, v_z)
    level = np.sqrt((1 - seen**2) * (1 - lit**2)) * np.cos(around)
    length = 2 + 2 * (level + seen * lit)
    sine = np.sqrt(np.clip(1 - (seen + lit) ** 2 / length, 0, 1))
    shadow = 4 * (lit + seen - lit * seen)
    inverses = 1 / np.maximum(axis, _SMOOTHEST) ** 2
    density = lambda x: (2 + x) / (2 * np.pi) * sine**x
    sums = [np.sum(density(x) / shadow * lit * solid, axis=1) for x in inverses]
    return np.stack(sums)[..., None].astype(np.float32)
