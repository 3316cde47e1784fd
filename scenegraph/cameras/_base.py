import abc
import dataclasses
import operator
from typing import Any

import jax
import jax.numpy as jnp
from equinox import AbstractVar

from .._typing import Array, Float, IntLike, Scalar, Vector
from ..numerics import AbstractModule, require_order, safe_normalise, unfreeze
from ..rays import Ray


class AbstractCamera(AbstractModule):
    """Turns a pixel into a cone.

    Pixel `(x, y)` has its centre at `(column + 0.5, row + 0.5)`, y down in the picture. Camera
    axes are OpenGL's: x right, y up, looking along -z. The leaves `focal` and `principal_point` are
    in pixels, as are `width` and `height`.
    """

    width: AbstractVar[int]
    height: AbstractVar[int]
    near: AbstractVar[Scalar]
    far: AbstractVar[Scalar]

    def __check_init__(self):
        require_order(self, "near", "far")

    @abc.abstractmethod
    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        """Computes the line through a pixel, in the world.

        **Arguments:**

        - `pixel`: coordinates `(x, y)` in pixels, `2`.

        **Returns:**

        `(origin, direction)`, `3` each; the direction is not normalised.
        """

    @abc.abstractmethod
    def project(self, point: Vector) -> Float[Array, "2"]:
        """Projects a point of the world to the picture: the inverse of `line`.

        **Arguments:**

        - `point`: the point, in the world, `3`.

        **Returns:**

        Coordinates `(x, y)` in pixels, `2`; not finite for a point that the camera cannot see
        because it lies in the plane of the lens, or behind it.
        """

    @abc.abstractmethod
    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        """Computes the cone through a pixel.

        **Arguments:**

        - `pixel`: coordinates `(x, y)` in pixels, `2`.

        **Returns:**

        One ray, in the world.
        """

    def resized(self, width: IntLike, height: IntLike) -> "AbstractCamera":
        """Returns the same camera with another size of its picture: every pixel sees what it saw.

        `scale_resolution` keeps the view instead.

        **Arguments:**

        - `width`, `height`: the new size, in pixels.

        **Returns:**

        The camera, with the same leaves.

        **Errors:**

        `ValueError` for sizes that are not positive integers.
        """
        return _resized(self, *as_resolution(width, height))


class AbstractOuterCamera(AbstractCamera):
    """A camera about another one, whose picture has the same size."""

    camera: AbstractVar[AbstractCamera]

    @property
    def width(self) -> int:
        """The width of the picture, in pixels."""
        return self.camera.width

    @property
    def height(self) -> int:
        """The height of the picture, in pixels."""
        return self.camera.height


def cone(camera: AbstractCamera, pixel: Float[Array, "2"]) -> Ray:
    """Computes a camera's ray from its line, and the line's derivatives by the pixel.

    **Arguments:**

    - `camera`: the camera, with or without frozen parts.
    - `pixel`: coordinates `(x, y)` in pixels, `2`.

    **Returns:**

    One ray, in the world; `view` is its direction.
    """
    camera = unfreeze(camera)

    def twice(pixel: Float[Array, "2"]) -> tuple:
        line = camera.line(pixel)
        return line, line

    # The footprint of a pixel: do/d(x, y) and dd/d(x, y), in one pass with the line itself.
    derivatives, (origin, direction) = jax.jacfwd(twice, has_aux=True)(pixel)
    d_origin, d_direction = derivatives
    view = safe_normalise(direction)
    return Ray(origin, direction, view, d_origin.T, d_direction.T, camera.near, camera.far)


def _resized(camera: AbstractCamera, width: int, height: int) -> AbstractCamera:
    """Copies a camera with another size, its own or that of the camera inside it."""
    # Not by the constructor, which would need to know each class's arguments.
    copy = object.__new__(type(camera))
    for field in dataclasses.fields(camera):
        value = getattr(camera, field.name)
        if isinstance(value, AbstractCamera):
            value = _resized(value, width, height)
        value = {"width": width, "height": height}.get(field.name, value)
        object.__setattr__(copy, field.name, value)
    return copy


def as_resolution(width: Any, height: Any) -> tuple[int, int]:
    """Returns the size of a picture, which must be positive whole numbers of any type."""
    wrong = f"a camera's `width` and `height` must be positive integers; got {width!r}, {height!r}."
    try:
        size = operator.index(width), operator.index(height)
    except TypeError as error:
        # Of numbers that are being traced, JAX says more.
        raise ValueError(wrong) if type(error) is TypeError else error from None
    if min(size) <= 0:
        raise ValueError(wrong)
    return size


def pixel_centres(width: int, height: int) -> Float[Array, "pixels 2"]:
    """Returns the centres `(x, y)` of all pixels, row by row."""
    rows, columns = jnp.divmod(jnp.arange(width * height), width)
    return jnp.stack([columns, rows], axis=-1) + 0.5
