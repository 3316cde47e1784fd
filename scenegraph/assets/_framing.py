"""A view of a scene and lights for it, where it has none."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import IntLike, VectorLike
from ..cameras import AbstractCamera, MovedCamera, orbit, PerspectiveCamera, spiral
from ..lights import AbstractLight, AmbientLight, DirectionalLight
from ..numerics import unfreeze
from ..scene import find_cameras, find_contents, Group, Scene, Surface, Volume
from ..shapes import AbstractShape, as_mesh, bounding_ball, Box, Ellipsoid, FACETED
from ..transforms import Pose
from ._names import unique_names
from ._walk import placed_nodes


# The horizontal angle of view in radians, and the space around what is seen.
_FOV, _MARGIN = 0.7, 1.05
# A white surface that faces the key light reflects 2.2 / pi + 0.3 = 1.
_KEY, _FILL = 2.2, 0.3


class Bounds(NamedTuple):
    """A box that holds a scene, in the world."""

    lower: np.ndarray
    upper: np.ndarray

    @property
    def center(self) -> np.ndarray:
        """The centre."""
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> float:
        """The distance from the centre to a corner; 1 for a box without extent."""
        return float(np.linalg.norm(self.upper - self.lower)) / 2 or 1.0


def scene_bounds(scene: Scene) -> Bounds:
    """Returns a box about all surfaces and volumes that end somewhere; a unit cube for none."""
    lower, upper = np.full(3, np.inf), np.full(3, -np.inf)
    for node, matrix in placed_nodes(scene):
        if not isinstance(node, Surface | Volume):
            continue
        shape = node.shape if isinstance(node, Surface) else node.box()
        if isinstance(shape, AbstractShape):
            points = _extremes(shape) @ matrix[:3, :3].T + matrix[:3, 3]
            lower = np.minimum(lower, np.min(points, axis=0, initial=np.inf))
            upper = np.maximum(upper, np.max(points, axis=0, initial=-np.inf))
    if not np.all(np.isfinite(upper - lower)):
        return Bounds(np.full(3, -0.5), np.full(3, 0.5))
    return Bounds(lower, upper)


def _extremes(shape: AbstractShape) -> np.ndarray:
    """Returns points whose convex hull holds a shape; none for an endless one."""
    if isinstance(shape, FACETED):
        return np.asarray(as_mesh(shape).vertices)
    if isinstance(shape, Ellipsoid):
        center, radii = np.asarray(shape.center), np.asarray(shape.radii)
        return _corners(center - radii, center + radii)
    if isinstance(shape, Box):
        lower, upper = np.asarray(shape.lower), np.asarray(shape.upper)
    else:
        ball = bounding_ball(shape)
        center, radius = np.asarray(ball.center), np.asarray(ball.radius)
        lower, upper = center - radius, center + radius
    return _corners(lower, upper)


def _corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Returns the corners of a box; none of an endless one."""
    corners = np.stack(np.meshgrid(*np.stack([lower, upper]).T), axis=-1).reshape(-1, 3)
    return corners if np.all(np.isfinite(corners)) else np.zeros((0, 3))


def frame_camera(
    scene: Scene, width: IntLike = 512, height: IntLike = 512, *, up: VectorLike = (0.0, 0.0, 1.0)
) -> PerspectiveCamera:
    """Makes a camera that sees a whole scene, from the front, the right and above.

    **Arguments:**

    - `scene`: the scene. Its bounds are those of meshes' vertices and other shapes' balls; endless
      planes do not count.
    - `width`, `height`: the size of the picture, in pixels.
    - `up`: the direction upwards, `3`; that of z by default. Keyword only argument.

    **Returns:**

    The camera.
    """
    bounds, (right, up, front) = scene_bounds(scene), _axes(up)
    # A ball of radius r fills the half angle a at the distance r / sin(a).
    half = min(_FOV / 2, math.atan(math.tan(_FOV / 2) * int(height) / int(width)))
    distance = _MARGIN * bounds.radius / math.sin(half)
    way = 0.5 * right + 0.4 * up + front
    eye = bounds.center + distance * way / np.linalg.norm(way)
    limits = 0.01 * distance, 100 * distance
    eye, center, up = eye.tolist(), bounds.center.tolist(), up.tolist()
    return PerspectiveCamera.look_at(eye, center, up, _FOV, width, height, *limits)


def _axes(up: VectorLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns unit vectors right, up and to the front: x, y and z where y is up."""
    up = np.asarray(up, float) / np.linalg.norm(np.asarray(up, float))
    x = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    # front = x cross up, of an x that is not parallel; right = up cross front
    front = np.cross(x, up)
    front = front / np.linalg.norm(front)
    return np.cross(up, front), up, front


def add_lights(scene: Scene, *, up: VectorLike = (0.0, 0.0, 1.0)) -> Scene:
    """Adds a key light and even light to a scene without lights.

    **Arguments:**

    - `scene`: the scene.
    - `up`: the direction upwards, `3`; that of z by default. Keyword only argument.

    **Returns:**

    The scene with a directional light from the front, above and the left, of irradiance 2.2, and
    ambient light of radiance 0.3; the scene itself if it has a light.
    """
    if find_contents(scene).lights:
        return scene
    right, up, front = _axes(up)
    reach = 10 * scene_bounds(scene).radius
    lights: dict[str, AbstractLight] = {
        "key_light": DirectionalLight(0.6 * right - up - 0.8 * front, [_KEY] * 3, reach),
        "fill_light": AmbientLight([_FILL] * 3),
    }
    # Without their wrapper, frozen children stay frozen.
    children = scene.root.children if isinstance(scene.root, Group) else {"root": scene.root}
    names = unique_names([*children, *lights])
    root = Group(**dict(zip(names, [*children.values(), *lights.values()], strict=True)))
    return eqx.tree_at(lambda s: s.root, scene, root)


def scene_camera(
    scene: Scene, path: str | None = None, *, up: VectorLike = (0.0, 0.0, 1.0)
) -> AbstractCamera:
    """Returns a camera of a scene, its first by default, or one that sees all of it."""
    found = find_cameras(scene)
    if path is not None and path not in found:
        known = ", ".join(sorted(found)) or "none"
        raise ValueError(f"there is no camera at {path!r}; cameras in the scene: {known}.")
    if not found:
        return frame_camera(scene, up=up)
    return found[path or min(found)]


def camera_path(
    scene: Scene,
    camera: AbstractCamera,
    path: str,
    frames: int,
    *,
    up: VectorLike = (0.0, 0.0, 1.0),
) -> list[AbstractCamera]:
    """Returns the cameras of an orbit or a spiral about the middle of a scene."""
    center = scene_bounds(scene).center
    paths = {"orbit": orbit, "spiral": spiral}
    if path not in paths:
        raise ValueError(f"a file of meshes knows the paths orbit and spiral; got {path!r}.")
    _, up, _ = _axes(up)
    return paths[path](_aimed(camera, center, up), center.tolist(), up.tolist(), frames)


def _aimed(camera: AbstractCamera, center: np.ndarray, up: np.ndarray) -> AbstractCamera:
    """Returns a camera of the world that stands where one of the scene does, if it can turn."""
    middle = jnp.asarray([camera.width / 2, camera.height / 2])
    eye, _ = unfreeze(camera).line(middle)
    inner: Any = unfreeze(camera)
    while isinstance(inner, MovedCamera):
        inner = inner.camera
    way = np.asarray(eye, float) - center
    if np.linalg.norm(np.cross(way, up)) <= 1e-3 * np.linalg.norm(way):
        # From straight above, there is nothing to turn about.
        eye = np.asarray(eye, float) + 0.3 * (np.linalg.norm(way) + 1e-3) * _axes(up)[2]
    pose = Pose.look_at(np.asarray(eye).tolist(), center.tolist(), up.tolist())
    return eqx.tree_at(lambda c: c.pose, inner, pose)
