"""Cameras of one kind, stacked to one whose leaves have a leading axis."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..cameras import AbstractCamera


def stack_cameras(cameras: list[AbstractCamera]) -> AbstractCamera:
    """Stacks cameras to one whose leaves have a leading axis, with the size of the first."""
    size = cameras[0].width, cameras[0].height
    alike = [camera.resized(*size) for camera in cameras]
    if len({jax.tree.structure(camera) for camera in alike}) > 1:
        raise ValueError("the cameras differ in kind, or in static settings other than their size.")
    # One camera of each size is enough to test.
    by_size = {(camera.width, camera.height): camera for camera in cameras}
    for camera in by_size.values():
        _check_size_independence(camera, camera.resized(*size))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *alike)


def _check_size_independence(camera: AbstractCamera, resized: AbstractCamera) -> None:
    # All pictures of a stack are rendered with one static size, which must not change a ray.
    if (camera.width, camera.height) == (resized.width, resized.height):
        return
    # Tested in the last pixel of the picture. Numbers that are being traced cannot be compared:
    # any others of their shapes do as well.
    with jax.ensure_compile_time_eval():
        pixel = jnp.asarray([camera.width - 0.5, camera.height - 0.5])
        leaves = [jax.tree.leaves(_stand_in(x).ray(pixel)) for x in (camera, resized)]
        equal = [bool(jnp.array_equal(a, b, equal_nan=True)) for a, b in zip(*leaves, strict=True)]
    if not all(equal):
        raise ValueError(
            f"the rays of a {type(camera).__name__} depend on the size of its picture; "
            "all pictures must have the same."
        )


def _stand_in(camera: AbstractCamera) -> AbstractCamera:
    """Returns a camera with some numbers in the place of those that are being traced."""

    def known(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        return jnp.linspace(0.5, 1.5, leaf.size, dtype=leaf.dtype).reshape(leaf.shape)

    return jax.tree.map(known, camera)
