from .._typing import Array, Float, Scalar, Vector
from ..numerics import unfreeze
from ..rays import Ray, transform_ray
from ..transforms import AbstractTransform
from ._base import AbstractCamera, AbstractOuterCamera


class MovedCamera(AbstractOuterCamera):
    """A camera in another frame, as under a `Transformed` node; `transform` is world from frame."""

    transform: AbstractTransform
    camera: AbstractCamera

    def __init__(self, transform: AbstractTransform, camera: AbstractCamera):
        self.transform, self.camera = transform, camera

    @property
    def near(self) -> Scalar:
        """The near end of the camera's rays, in `t`."""
        return unfreeze(self.camera).near

    @property
    def far(self) -> Scalar:
        """The far end of the camera's rays, in `t`."""
        return unfreeze(self.camera).far

    def line(self, pixel: Float[Array, "2"]) -> tuple[Vector, Vector]:
        origin, direction = self.camera.line(pixel)
        return self.transform.point(origin), self.transform.direction(direction)

    def ray(self, pixel: Float[Array, "2"]) -> Ray:
        return transform_ray(unfreeze(self.transform), self.camera.ray(pixel))

    def project(self, point: Vector) -> Float[Array, "2"]:
        return self.camera.project(self.transform.inverse().point(point))
