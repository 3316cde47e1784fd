"""Cameras in a scene whose own cameras were corrected: moved by what these have moved by."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, IntLike, RandomKey
from ..cameras import AbstractCamera, pose_matrix
from ..data import RayBatches, Views
from ..losses import MultiLevelLoss
from ..numerics import matmul, unfreeze
from ..parallel import as_layout
from ..pixels import known_cameras
from ..scene import Capture, find_capture, Group, move_camera, Scene
from ..transforms import Pose
from ._corrections import with_corrections
from ._loss import RenderLoss
from ._polish import solve_poses, sum_equations


# The longest first step of a pose, in pixels. The damping of equations, as a share of their mean
# diagonal, up to a part of the steps and at the end; and the share that is kept of the equations of
# steps before.
_LONGEST, _KEPT = 1.0, 0.8
_LATE, _DAMPINGS = 0.2, (1.0, 0.001)
# The most rays of a batch.
_BATCH = 2048


class Motion(NamedTuple):
    """A similarity of the world: `scale * turn @ x + shift`."""

    scale: float
    turn: np.ndarray  # 3 3
    shift: np.ndarray  # 3

    def of_poses(self, poses: np.ndarray) -> np.ndarray:
        """Moves poses, `frames 4 4`, world from camera."""
        moved = np.array(poses, np.float64)
        # A pose keeps its units: R' = T R, and x' = s T x + b.
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
    # s = sum y . R x / sum |x|^2, of places about their means
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
        lens = matmul(own.lens_scale, own.lens)
        cameras = jax.vmap(lambda camera: move_camera(camera, None, lens))(cameras)
    return eqx.tree_at(lambda v: v.cameras, views, cameras)


def align_cameras(
    scene: Scene,
    views: Views,
    *,
    name: str = "capture",
    steps: IntLike = 200,
    rays: int = 256,
    key: RandomKey | None = None,
) -> Views:
    """Finds the cameras of further pictures in a scene whose own cameras were corrected.

    They are moved by the similarity that the scene's cameras have moved by; then the poses are
    fitted to the pictures by steps of Levenberg and Marquardt, while the scene stays as it is.

    **Arguments:**

    - `scene`: the fitted scene, with its `Capture`.
    - `views`: the pictures, with cameras in the world of those that were given to the fit.
    - `name`: the name of the `Capture`. Keyword only, as is all that follows.
    - `steps`: the number of steps; 0 for the similarity alone.
    - `rays`: the number of rays of a picture in a step, on average.
    - `key`: the key of the random batches; by default always the same.

    **Returns:**

    The pictures with other cameras; the same ones if no camera of the scene was corrected.

    **Errors:**

    `ValueError` if there is no `Capture` of that name, and for less than one ray.
    """
    if rays < 1:
        raise ValueError(f"`align_cameras` needs at least one ray a picture; got {rays}.")
    capture = find_capture(scene, name)
    if capture is None:
        raise ValueError(f"the scene has no Capture {name!r}; `with_corrections` makes one.")
    moved = move_cameras(capture, views)
    if not steps or capture.poses is None:
        return moved
    still = {child: node for child, node in scene.root.children.items() if child != name}
    alone = eqx.tree_at(lambda s: s.root, scene, Group(**still))
    whole, posed = with_corrections(alone, moved, name=name)
    key = jax.random.key(0) if key is None else key
    found = find_capture(_follow(whole, posed, name, int(steps), rays, key), name)
    return moved if found is None else eqx.tree_at(lambda v: v.cameras, moved, found.corrected())


def _follow(scene: Scene, views: Views, name: str, steps: int, rays: int, key: RandomKey) -> Scene:
    """Fits the poses of a `Capture` to its pictures."""
    layout, total = as_layout(None), rays * views.frames
    size = min(_BATCH, total)
    batches, scene = layout.copy(RayBatches(views, size)), layout.place(scene)
    loss = RenderLoss(MultiLevelLoss(), jitter=False, mesh=layout.mesh)
    where: Any = lambda scene: scene.root.children[name].poses
    # Equations of n steps before count _KEPT^n.
    blend = lambda old, new: _KEPT * old + new
    known, count = None, max(1, round(total / size))
    for number in range(steps):
        new = sum_equations(batches, loss, scene, layout, key=key, number=number, count=count)
        known = new if known is None else jax.tree.map(blend, known, new)
        damping, share = _rule(number / steps)
        change = share * solve_poses(known, least=damping, longest=_LONGEST)
        scene = eqx.tree_at(where, scene, layout.place(where(scene) + jnp.asarray(change)))
    return scene


def _rule(part: float) -> tuple[float, float]:
    """Returns the damping, and the share of a step that is taken."""
    # Far off, single steps are noisy, and narrow minima many: steps go along the gradient rather
    # than to where it vanishes. Near by, that would be slow in directions that are seen little of.
    late = max(0.0, (part - _LATE) / (1 - _LATE))
    # Shares that fall to zero average the noise of all late steps.
    return _DAMPINGS[0] * (_DAMPINGS[1] / _DAMPINGS[0]) ** late, min(1.0, 2 * (1 - part))
