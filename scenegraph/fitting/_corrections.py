import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar
from ..cameras import (
    AbstractCamera,
    FisheyeCamera,
    NDCCamera,
    OpenCVCamera,
    PanoramaCamera,
    PerspectiveCamera,
)
from ..data import Ball, find_ball, Views
from ..numerics import einsum, unfreeze
from ..pixels import known_cameras, SceneCameras
from ..scene import Capture, Group, lens_size, move_camera, Scene
from ..transforms import Pose


# Points that show how a correction moves a picture: so many along each side of it, at these
# multiples of the distance of what the cameras look at.
_SIDE, _DEPTHS = 5, (0.5, 1.0, 2.0)
# CamP, section 4.2: the share of the diagonal that is added to the matrix, and a constant.
_DAMPING, _LEAST = 0.1, 1e-8


def with_corrections(
    scene: Scene,
    views: Views,
    *,
    poses: bool = True,
    lens: bool = False,
    colors: bool = False,
    color_strength: float = 0.1,
    appearance: int = 0,
    name: str = "capture",
) -> tuple[Scene, Views]:
    """Makes corrections of pictures leaves of a scene, which `fit` then optimises with it.

    **Arguments:**

    - `scene`: the scene that will be fitted; its root is a `Group`.
    - `views`: the pictures with the cameras that they are thought to have.
    - `poses`: if true, the camera of every picture may move. Keyword only, as is all that follows.
    - `lens`: if true, focal length, principal point, and k1 and k2 of lenses that have them may
      change; all pictures share the change.
    - `colors`: if true, every picture may have an exposure and a white balance of its own.
    - `color_strength`: the factor by which corrections of colours are drawn to none.
    - `appearance`: the size of the code that every picture has, for fields whose colours depend on
      codes of that size, such as `GridField(..., appearance=4)`; 0 for none.
    - `name`: the name of the new node, a `Capture`, in the root of the scene.

    **Returns:**

    The scene with that node, and the pictures with cameras in the scene, ready for `fit`.

    **Errors:**

    `TypeError` for a root that is no `Group`; `ValueError` for a name that is taken, and for
    cameras without what is to be corrected, such as those in NDC.

    Example: fit a scene and its cameras, these more slowly.

    ```python
    scene = sg.Scene(sg.Group(cloud=sg.Volume(sg.fields.GaussianBlob([0.0, 0.0, 0.0], 0.5, 4.0))))
    eyes = [[0.0, -3.0, 1.0], [3.0, 0.0, 1.0], [0.0, 3.0, 1.0]]
    look = lambda eye: sg.PerspectiveCamera.look_at(eye, [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 8, 8)
    cameras = [look(eye) for eye in eyes]
    views = sg.views(cameras, [sg.render(scene, camera) for camera in cameras])
    scene, views = sg.fitting.with_corrections(scene, views)
    rates = {"capture.*": optax.adam(0.05), "**": optax.adam(0.01)}
    optimizer, key = sg.optimizers.by_path(rates), jax.random.key(0)
    fitted = sg.fit(scene, views, optimizer=optimizer, steps=2, key=key).scene
    cameras = fitted["capture"].corrected()
    ```
    """
    root = scene.root
    if not isinstance(root, Group):
        raise TypeError(f"the root of the scene must be a Group; got a {type(root).__name__}.")
    if name in root.children:
        raise ValueError(f"the scene has a child {name!r} already; choose another `name`.")
    given = known_cameras(views)
    pose_scales = lens_scale = None
    if poses or lens:
        _check_kind(given)
        pose_scales, lens_scale = _scales(given, find_ball(views))
    node = Capture(
        given,
        jnp.zeros((views.frames, 6)) if poses else None,
        jnp.zeros(lens_size(given)) if lens else None,
        jnp.zeros((views.frames, 3, 4)) if colors else None,
        pose_scales if poses else None,
        lens_scale if lens else None,
        color_strength,
        jnp.zeros((views.frames, appearance)) if appearance else None,
    )
    whole = dataclasses.replace(scene, root=Group(**root.children, **{name: node}))
    return whole, dataclasses.replace(views, cameras=SceneCameras((name,)))


def _check_kind(cameras: AbstractCamera) -> None:
    """Refuses cameras whose pose or lens has no correction."""
    kinds = PerspectiveCamera, OpenCVCamera, FisheyeCamera, PanoramaCamera
    if not isinstance(cameras, kinds) or not isinstance(cameras.pose, Pose):
        hint = "; load the data without NDC (--no-ndc)" if isinstance(cameras, NDCCamera) else ""
        raise ValueError(
            f"cameras of the kind {type(cameras).__name__} cannot be corrected: they have to be "
            f"{', '.join(kind.__name__ for kind in kinds)}, with a `Pose`{hint}."
        )


def _scales(cameras: AbstractCamera, ball: Ball) -> tuple[Array, Array]:
    """Computes the preconditioners, of every pose and of the lens that all pictures share."""
    squares = np.asarray(_squares(cameras, jnp.asarray(ball.radius)), np.float64)
    poses = np.stack([_inverse_root(square[:6, :6]) for square in squares])
    lens = _inverse_root(np.mean(squares[:, 6:, 6:], axis=0))
    return jnp.asarray(poses, jnp.float32), jnp.asarray(lens, jnp.float32)


@eqx.filter_jit
def _squares(cameras: AbstractCamera, distance: Scalar) -> Float[Array, "frames n n"]:
    """Computes the mean over points of J^T J, with J the derivatives of where they are seen."""
    zero = jnp.zeros(6 + lens_size(cameras))
    steps = (jnp.arange(_SIDE) + 0.5) / _SIDE
    raster = jnp.stack(jnp.meshgrid(steps, steps), axis=-1).reshape(-1, 2)

    def square(camera: AbstractCamera) -> Float[Array, "n n"]:
        pixels = raster * jnp.asarray([camera.width, camera.height])
        origins, directions = jax.vmap(camera.line)(pixels)
        ahead = distance * directions / jnp.linalg.norm(directions, axis=-1, keepdims=True)
        points = jnp.concatenate([origins + depth * ahead for depth in _DEPTHS])

        def seen(change: Float[Array, " n"]) -> Float[Array, "points 2"]:
            return jax.vmap(move_camera(camera, change[:6], change[6:]).project)(points)

        # Of each point (p 2 n): how its pixel moves with pose and lens.
        jacobian = jax.jacfwd(seen)(zero)
        known = jnp.all(jnp.isfinite(jacobian), axis=(1, 2), keepdims=True)
        jacobian = jnp.where(known, jacobian, 0.0)
        return einsum("pij,pik->jk", jacobian, jacobian) / jnp.maximum(jnp.sum(known), 1)

    return eqx.filter_vmap(square)(unfreeze(cameras))


def _inverse_root(square: np.ndarray) -> np.ndarray:
    """Returns the damped matrix to the power of -1/2."""
    # (S + lambda diag(S) + mu I)^(-1/2), after CamP, equation 8; mu in parts of the largest entry
    diagonal = np.diag(square)
    least = _LEAST * max(float(np.max(diagonal)), 1e-30)
    values, axes = np.linalg.eigh(square + np.diag(_DAMPING * diagonal + least))
    return (axes / np.sqrt(np.maximum(values, least))) @ axes.T
