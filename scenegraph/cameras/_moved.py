from .._typing import Array, Float, Scalar, Vector
from ..numerics import unfreeze
from ..rays import Ray, transform_ray
from ..transforms import AbstractTransform
from ._base import AbstractCamera


class MovedCamera(AbstractCamera):
    """A camera seen from another frame: what a camera under a `Transformed` node becomes."""

    transform: AbstractTransform
    camera: AbstractCamera

    def __init__(self, transform: AbstractTransform, camera: AbstractCamera):
        self.transform, self.camera = transform, camera

    @property
    def width(self) -> int:
        """Of the picture, in pixels."""
        return self.camera.width

    @property
    def height(self) -> int:
        """Of the picture, in pixels."""
        return self.camera.height

    @property
    def near(self) -> Scalar:
        """Where the camera's rays begin, in `t`."""
        return unfreeze(self.camera).near

    @property
    def far(self) -> Scalar:
        """Where the camera's rays end, in `t`."""
        return unfreeze(self.camera).far

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        origin, direction = self.camera.line(pixel)
        return self.transform.point(origin), self.transform.direction(direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return transform_ray(unfreeze(self.transform), self.camera.ray(pixel))

    def project(self, point: Vector) -> Float[Array, "2"]:
        return self.camera.project(self.transform.inverse().point(point))
