import equinox as eqx

from ._base import AbstractCamera
from ._ndc import NDCCamera
from ._orthographic import OrthographicCamera
from ._perspective import PerspectiveCamera


def scale_resolution(camera: AbstractCamera, factor: float) -> AbstractCamera:
    """The same view with fewer or more pixels.

    **Arguments:**

    - `camera`: perspective or orthographic, or such a one in NDC.
    - `factor`: of width and height, which are rounded to at least one pixel.

    **Returns:**

    The camera.

    **Errors:**

    `TypeError` for a camera of another kind.
    """
    if isinstance(camera, NDCCamera):
        inner = scale_resolution(camera.camera, factor)
        return eqx.tree_at(lambda c: c.camera, camera, inner)
    if not isinstance(camera, PerspectiveCamera | OrthographicCamera):
        raise TypeError(f"cannot change the resolution of a {type(camera).__name__}.")
    return type(camera)(
        camera.pose,
        camera.focal * factor,
        max(1, round(camera.width * factor)),
        max(1, round(camera.height * factor)),
        principal_point=camera.principal_point * factor,
        near=camera.near,
        far=camera.far,
    )
