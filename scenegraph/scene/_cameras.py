from typing import Any

from ..cameras import AbstractCamera, MovedCamera
from ..numerics import is_frozen, unfreeze
from ._group import Group
from ._scene import Scene
from ._transformed import Transformed


def find_camera(scene: Scene, camera: AbstractCamera | str) -> AbstractCamera:
    """A camera in world coordinates.

    **Arguments:**

    - `scene`: where to look.
    - `camera`: a camera, which comes back as it is, or the path of one in the scene.

    **Returns:**

    The camera, moved by the transforms above it.

    **Errors:**

    `ValueError` for a path at which there is no camera; lists those that there are.
    """
    if isinstance(camera, AbstractCamera):
        return camera
    found = _cameras(scene.root, ())
    if camera not in found:
        known = ", ".join(sorted(found)) or "none"
        raise ValueError(f"there is no camera at {camera!r}; cameras in the scene: {known}.")
    return found[camera]


def camera_paths(scene: Scene) -> list[str]:
    """Where there are cameras in a scene.

    **Arguments:**

    - `scene`: where to look.

    **Returns:**

    Their paths, sorted.
    """
    return sorted(_cameras(scene.root, ()))


def _cameras(node: Any, path: tuple[str, ...]) -> dict[str, AbstractCamera]:
    if is_frozen(node):
        return _cameras(unfreeze(node), path)
    if isinstance(node, AbstractCamera):
        return {".".join(path): node}
    if isinstance(node, Transformed):
        below = _cameras(node.child, path)
        return {name: MovedCamera(node.transform, camera) for name, camera in below.items()}
    if isinstance(node, Group):
        parts = [_cameras(child, (*path, name)) for name, child in node.children.items()]
        return {name: camera for part in parts for name, camera in part.items()}
    return {}
