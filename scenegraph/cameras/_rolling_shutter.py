import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, ScalarLike, Vector, VectorLike
from ..numerics import as_float_leaf, Frozen, require_positive, unfreeze
from ..rays import Ray
from ..transforms import Pose
from ._base import AbstractCamera, AbstractOuterCamera, cone


# Newton's steps to the row in which a point is seen; each doubles the digits.
_STEPS = 8


class RollingShutter(AbstractOuterCamera):
    """A camera that moves while its picture is read row by row.

    The pixel at the height `y` is seen from the pose

        pose @ exp((y / rows - 1/2) * velocity)

    with the other camera's `pose`, which is that of the middle row. Between the centres of two
    rows the pose changes steadily, and so do the cones of pixels.

    **Arguments:**

    - `camera`: the camera at rest, of any kind with a leaf `pose`.
    - `velocity`: the motion in the time of one picture, as a tangent vector of SE(3): the shift in
      units of the scene first, then the rotation in radians, along and about the camera's own
      axes, `6`; negative for a picture that is read from below.
    - `rows`: the number of rows that are read in the time of one picture, in pixels; by default
      the height of the picture.

    **Errors:**

    `TypeError` for a camera without a `pose` of its own; `ValueError` for `rows` that are not
    positive.

    **Source:** Hedborg et al., "Rolling shutter bundle adjustment", 2012, with a constant twist.

    Example: a camera that pans to the right by a degree while a picture is read.

    ```python
    still = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 12)
    panning = sg.RollingShutter(still, [0, 0, 0, 0, -np.deg2rad(1), 0])
    ```
    """

    camera: AbstractCamera
    velocity: Float[Array, "6"] = eqx.field(converter=as_float_leaf)
    rows: Scalar = eqx.field(converter=as_float_leaf)

    def __init__(
        self,
        camera: AbstractCamera,
        velocity: VectorLike,
        *,
        rows: ScalarLike | None = None,
    ):
        self.camera, self.velocity = camera, as_float_leaf(velocity)
        self.rows = as_float_leaf(camera.height if rows is None else rows)

    def __check_init__(self):
        require_positive(self, "rows")
        if "pose" not in {field.name for field in dataclasses.fields(self.camera)}:
            raise TypeError(
                "`RollingShutter.camera` must have a leaf `pose`; a "
                f"{type(self.camera).__name__} has none. Put the camera inside it into the "
                "`RollingShutter` instead."
            )

    @property
    def near(self) -> Scalar:
        """The near end of the rays, in `t`."""
        return unfreeze(self.camera).near

    @property
    def far(self) -> Scalar:
        """The far end of the rays, in `t`."""
        return unfreeze(self.camera).far

    @property
    def pose(self) -> Any:
        """The transform world from camera in the middle row."""
        return self.camera.pose  # pyright: ignore[reportAttributeAccessIssue]

    def at_height(self, y: ScalarLike) -> AbstractCamera:
        """Returns the camera at rest that sees one row as this one does.

        **Arguments:**

        - `y`: the height in the picture, in pixels; the centre of the first row is 0.5.

        **Returns:**

        The camera inside, with the pose of that row.
        """
        seen = unfreeze(self)
        time = as_float_leaf(y) / seen.rows - 0.5
        base = Frozen(jnp.asarray(np.eye(4), seen.velocity.dtype))
        moved = seen.pose @ Pose(base, time * seen.velocity)
        return eqx.tree_at(lambda c: c.pose, seen.camera, moved)

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        return self.at_height(pixel[1]).line(pixel)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return cone(self, pixel)

    def project(self, point: Vector) -> Float[Array, "2"]:
        # The row in which a point is seen: y such that the camera of the row y shows it at y.
        def above(y: Scalar) -> Scalar:
            return self.at_height(y).project(point)[1] - y

        def find_row(function: Any, y: Scalar) -> Scalar:
            def newton(_: int, y: Scalar) -> Scalar:
                value, derivative = jax.jvp(function, (y,), (jnp.ones_like(y),))
                # y <- y - g / g', where g(y) = 0 in the row y in which the point is seen
                return y - value / derivative

            return jax.lax.fori_loop(0, _STEPS, newton, y)

        # The root of g(y, p) = 0 has dy = -(g_p dp) / g_y.
        divide = lambda linear, right: right / linear(jnp.ones_like(right))
        row = jax.lax.custom_root(above, unfreeze(self).rows / 2, find_row, divide)
        return self.at_height(row).project(point)
