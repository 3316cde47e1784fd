"""Cameras in a scene whose own cameras were corrected: moved by what these have moved by."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from .._typing import Array, Float, IntLike, RandomKey
from ..cameras import AbstractCamera, pose_matrix
from ..data import RayBatches, Views
from ..losses import MultiLevelLoss
from ..numerics import unfreeze
from ..pixels import known_cameras
from ..scene import Capture, find_capture, Group, move_camera, Scene
from ..transforms import Pose
from ._corrections import with_corrections
from ._fit import fit
from ._loss import RenderLoss


# The learning rate of poses, in pixels.
_RATE = 0.3


class Motion(NamedTuple):
    """A similarity of the world: `scale * turn @ x + shift`."""

    scale: float
    turn: np.ndarray  # 3 3
    shift: np.ndarray  # 3

    def of_poses(self, poses: np.ndarray) -> np.ndarray:
        """Moves poses, `frames 4 4`, world from camera."""
        moved = np.array(poses, np.float64)
        moved[:, :3, :3] = self.turn @ moved[:, :3, :3]
        moved[:, :3, 3] = self.scale * moved[:, :3, 3] @ self.turn.T + self.shift
        return moved


def find_motion(before: np.ndarray, after: np.ndarray) -> Motion:
    """Finds the similarity that takes poses, `frames 4 4`, nearest to others in least squares."""
    places, others = before[:, :3, 3], after[:, :3, 3]
    middle, other = places.mean(axis=0), others.mean(axis=0)
    own, their = places - middle, others - other
    spread = max(float(np.mean(np.sum(own**2, axis=1))), 1e-12)
    # R maximises tr(R^T H), with H the covariances of places and of axes (Umeyama 1991).
    crossed = their.T @ own / (spread * len(own))
    crossed += np.mean(after[:, :3, :3] @ before[:, :3, :3].transpose(0, 2, 1), axis=0)
    left, _, right = np.linalg.svd(crossed)
    turn = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
    scale = float(np.sum(their * (own @ turn.T)) / (spread * len(own)))
    scale = scale if len(own) > 1 and scale > 0 and spread > 1e-12 else 1.0
    return Motion(scale, turn, other - scale * turn @ middle)


@eqx.filter_jit
def _matrices(cameras: AbstractCamera) -> Float[Array, "frames 4 4"]:
    return eqx.filter_vmap(pose_matrix)(cameras)


def poses_of(cameras: AbstractCamera) -> np.ndarray:
    """Returns the poses of stacked cameras, world from camera, `frames 4 4`."""
    return np.asarray(_matrices(unfreeze(cameras)), np.float64)


def move_cameras(capture: Capture, views: Views) -> Views:
    """Moves cameras as those of a capture have moved on the whole, and gives them its lens."""
    own: Any = unfreeze(capture)
    if own.poses is None and own.lens is None:
        return views
    cameras: Any = known_cameras(views)
    motion = find_motion(poses_of(own.cameras), poses_of(own.corrected()))
    poses = motion.of_poses(poses_of(cameras)).astype(np.float32)
    cameras = eqx.tree_at(
        lambda c: (c.pose, c.near, c.far),
        cameras,
        (jax.vmap(Pose)(poses), cameras.near * motion.scale, cameras.far * motion.scale),
    )
    if own.lens is not None:
        lens = own.lens_scale @ own.lens
        cameras = jax.vmap(lambda camera: move_camera(camera, None, lens))(cameras)
    return eqx.tree_at(lambda v: v.cameras, views, cameras)


def align_cameras(
    scene: Scene,
    views: Views,
    *,
    name: str = "capture",
    steps: IntLike = 200,
    rays: int = 2048,
    key: RandomKey | None = None,
) -> Views:
    """Finds the cameras of further pictures in a scene whose own cameras were corrected.

    They are moved by the similarity that the scene's cameras have moved by; then their poses are
    fitted to the pictures, while the scene stays as it is.

    **Arguments:**

    - `scene`: the fitted scene, with its `Capture`.
    - `views`: the pictures, with cameras in the world of those that were given to the fit.
    - `name`: the name of the `Capture`. Keyword only, as is all that follows.
    - `steps`: the number of steps; 0 for the similarity alone.
    - `rays`: the number of rays in a step.
    - `key`: the key of the random batches; by default always the same.

    **Returns:**

    The pictures with other cameras; the same ones if no camera of the scene was corrected.

    **Errors:**

    `ValueError` if there is no `Capture` of that name.
    """
    capture = find_capture(scene, name)
    if capture is None:
        raise ValueError(f"the scene has no Capture {name!r}; `with_corrections` makes one.")
    moved = move_cameras(capture, views)
    if not steps or capture.poses is None:
        return moved
    still = {child: node for child, node in scene.root.children.items() if child != name}
    alone = eqx.tree_at(lambda s: s.root, scene, Group(**still))
    whole, posed = with_corrections(alone, moved, name=name)
    result = fit(
        whole,
        RayBatches(posed, rays),
        trainable=[f"{name}.poses"],
        optimizer=optax.adam(optax.cosine_decay_schedule(_RATE, int(steps))),
        loss=RenderLoss(MultiLevelLoss(), jitter=False),
        steps=steps,
        key=jax.random.key(0) if key is None else key,
    )
    found = find_capture(result.scene, name)
    return moved if found is None else eqx.tree_at(lambda v: v.cameras, moved, found.corrected())
