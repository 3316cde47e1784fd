"""Values of layers beside colour and opacity, kept only where a picture is to show them."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike

from .._typing import Array, Color, Int, Vector
from ..flat import albedo_at, Instance, shade
from ..rays import Hit, Irradiance
from ..shaders import AbstractShader


# The fields of `Layers` from which outputs are computed.
_FIELDS = {
    "normal": ("normal",),
    "median_depth": ("normal",),
    "albedo": ("albedo",),
    "uv": ("uv", "surface"),
    "position": ("position",),
    "surface": ("surface",),
}


def fields_of_layers(outputs: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the fields of `Layers` that outputs need."""
    return tuple(dict.fromkeys(field for name in outputs for field in _FIELDS.get(name, ())))


def need_normals(outputs: tuple[str, ...]) -> bool:
    """Returns true for outputs that need the normals of layers and media."""
    return "normal" in fields_of_layers(outputs)


class Paint(NamedTuple):
    """The colour of a layer, and its albedo; `None` unless requested."""

    rgb: Color
    albedo: Color | None


def paint(
    instance: Instance,
    shader: AbstractShader,
    hit: Hit,
    view: Vector,
    lights: Irradiance,
    *,
    fields: tuple[str, ...],
) -> Paint:
    """Returns what a shader says of a hit, as in `shade`."""
    albedo = albedo_at(instance, shader, hit, view) if "albedo" in fields else None
    return Paint(shade(instance, shader, hit, view, lights), albedo)


def details_of(
    fields: tuple[str, ...], hits: Hit, paints: Paint, numbers: Int[Array, "*layers"]
) -> dict[str, Any]:
    """Returns fields of `Layers`."""
    values = {
        "normal": hits.normal,
        "albedo": paints.albedo,
        "uv": hits.uv,
        "position": hits.point,
        "surface": numbers.astype(jnp.int32),
    }
    return {name: values[name] for name in fields}


def no_details(fields: tuple[str, ...], count: int, dtype: DTypeLike) -> dict[str, Any]:
    """Returns fields of `Layers` for so many layers, all of them zero."""
    kinds = {"uv": jnp.zeros((count, 2), dtype), "surface": jnp.zeros(count, jnp.int32)}
    return {name: kinds.get(name, jnp.zeros((count, 3), dtype)) for name in fields}
