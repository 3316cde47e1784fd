"""Volumes in the world: where rays meet them, and what they add at a sample."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, PyTree, RandomKey, Scalar, Vector
from ..numerics import as_type, safe_norm
from ..rays import Medium, Ray, Section, Span, transform_section
from ..scene import Pace
from ._instances import Instance
from ._surface_instances import into


def span_of(instance: Instance, ray: Ray) -> Span:
    """Returns the part of a ray, in the world, in a volume's bounds."""
    return instance.node.span(into(instance, ray))


def prepare_of(instance: Instance, ray: Ray) -> PyTree:
    """Computes what all samples of a ray in a volume share."""
    return instance.node.prepare(into(instance, ray))


def is_occupied(instance: Instance, ray: Ray, part: Span) -> Bool[Array, ""]:
    """Returns false where a part of a ray is known to hold nothing of a volume."""
    return instance.node.occupied(into(instance, ray), part)


def thickness_of(instance: Instance, ray: Ray, part: Span) -> Scalar:
    """Returns the optical depth of a part of a ray that a volume's occupancy knows of."""
    return instance.node.thickness(into(instance, ray), part)


def rate_of(instance: Instance, ray: Ray) -> Scalar:
    """Returns the length of a ray in a volume's frame per unit of `t`: `|A^-1 d|`."""
    return safe_norm(into(instance, ray).direction)


def pace_of(instance: Instance, ray: Ray) -> Pace:
    """Returns how a ray passes the middle of a volume that is contracted."""
    return instance.node.pace(into(instance, ray))


def proposal_of(instance: Instance, prepared: PyTree, section: Section) -> Scalar:
    """Returns the density that a volume's proposal adds at a sample."""
    local = _section_into(instance, section)
    return instance.node.propose(local, prepared) * _stretch(local, section)


def medium_of(
    instance: Instance,
    prepared: PyTree,
    section: Section,
    *,
    linear: bool,
    key: RandomKey | None = None,
    normal: bool = False,
) -> Medium:
    """Returns what a volume adds at a sample; `normal`, if requested, is `- grad(density)`."""
    if not normal:
        return _medium_of(instance, prepared, section, linear, key)

    def density(mean: Vector) -> tuple[Scalar, Medium]:
        moved = eqx.tree_at(lambda s: s.gaussian.mean, section, mean)
        medium = _medium_of(instance, prepared, moved, linear, key)
        return medium.density, medium

    # d sigma / d mean, with the shape of the sample as it is.
    gradient, medium = jax.grad(density, has_aux=True)(section.gaussian.mean)
    return Medium(medium.density, medium.rgb, -gradient)


def _medium_of(
    instance: Instance, prepared: PyTree, section: Section, linear: bool, key: RandomKey | None
) -> Medium:
    local = _section_into(instance, section)
    own = None if key is None else jax.random.fold_in(key, instance.number)
    medium = instance.node.medium(local, prepared, key=own)
    # A scene with lights is linear; colours of fields fitted to pictures are decoded.
    rgb = instance.node.space.to_linear(medium.rgb) if linear else medium.rgb
    return as_type(Medium(medium.density * _stretch(local, section), rgb), section.t0.dtype)


def _section_into(instance: Instance, section: Section) -> Section:
    inverse = instance.node_from_world
    return section if inverse is None else transform_section(inverse, section)


def _stretch(local: Section, section: Section) -> Scalar:
    """Returns how much longer a part of a ray is in an instance's frame: `|A^-1 d| / |d|`."""
    if local is section:
        return jnp.ones_like(section.t0)
    # The optical depth sigma |d| dt is the same in both frames, so sigma grows as |d| shrinks.
    return safe_norm(local.gaussian.direction) / safe_norm(section.gaussian.direction)
