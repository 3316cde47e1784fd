import dataclasses
from typing import Any

import jax

from .._typing import PyTree
from ._base import AbstractCamera


# What cameras measure in pixels; `AbstractCamera` fixes the names.
_IN_PIXELS = ("focal", "principal_point")


def scale_resolution(camera: AbstractCamera, factor: float) -> AbstractCamera:
    """The same view with fewer or more pixels.

    **Arguments:**

    - `camera`: of any kind.
    - `factor`: of width and height, which are rounded to at least one pixel.

    **Returns:**

    The camera.

    **Errors:**

    `TypeError` for a camera that measures nothing in pixels, nor holds one that does.
    """
    names = [field.name for field in dataclasses.fields(camera)]
    changes = {name: _scale(getattr(camera, name), name, factor) for name in names}
    if not any(name in _IN_PIXELS or _is_camera(changes[name]) for name in names):
        raise TypeError(f"cannot change the resolution of a {type(camera).__name__}.")
    return _made(type(camera), changes)


def _scale(value: Any, name: str, factor: float) -> Any:
    if _is_camera(value):
        return scale_resolution(value, factor)
    if name in _IN_PIXELS:
        return _times(value, factor)
    return max(1, round(value * factor)) if name in ("width", "height") else value


def _times(tree: PyTree, factor: float) -> PyTree:
    """Frozen or not."""
    return jax.tree.map(lambda leaf: leaf * factor, tree)


def _is_camera(value: Any) -> bool:
    return isinstance(value, AbstractCamera)


def _made(kind: type, values: dict[str, Any]) -> AbstractCamera:
    """A Module of these fields; what they mean was checked when the camera was made."""
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
