import dataclasses

import equinox as eqx
import jax

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
    size = (max(1, round(length * factor)) for length in (camera.width, camera.height))
    return _scaled(camera, factor).resized(*size)


def _scaled(camera: AbstractCamera, factor: float) -> AbstractCamera:
    """With leaves for other pixels, those of a camera inside it, too."""
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
