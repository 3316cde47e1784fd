import dataclasses

import equinox as eqx
import jax

from ._base import AbstractCamera


# The leaves that are in pixels; `AbstractCamera` and `RollingShutter` fix the names.
_IN_PIXELS = ("focal", "principal_point", "rows")


def scale_resolution(camera: AbstractCamera, factor: float) -> AbstractCamera:
    """Returns a camera with the same view and `factor` times as many pixels along each side."""
    size = (max(1, round(length * factor)) for length in (camera.width, camera.height))
    return _scaled(camera, factor).resized(*size)


def _scaled(camera: AbstractCamera, factor: float) -> AbstractCamera:
    """Scales the leaves that are in pixels, those of a camera inside it, too."""
    # Lines are functions of (p - c) / f and y / rows, which stay if all of these grow alike.
    values = {field.name: getattr(camera, field.name) for field in dataclasses.fields(camera)}
    changes = {
        name: _scaled(value, factor)
        if isinstance(value, AbstractCamera)
        else jax.tree.map(lambda leaf: leaf * factor, value)  # frozen or not
        for name, value in values.items()
        if isinstance(value, AbstractCamera) or name in _IN_PIXELS
    }
    if not changes:
        raise TypeError(f"cannot change the resolution of a {type(camera).__name__}.")
    return eqx.tree_at(
        lambda c: [getattr(c, name) for name in changes], camera, [*changes.values()]
    )
