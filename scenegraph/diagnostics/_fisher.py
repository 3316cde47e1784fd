from collections.abc import Sequence

import jax.numpy as jnp

from .._typing import PyTree
from ..cameras import AbstractCamera
from ..data import Views, views
from ..images import Linear
from ..integrators import AbstractIntegrator
from ..scene import find_camera, Scene
from ..solving import linear_uncertainty, Uncertainty


def fisher(
    scene: Scene,
    cameras: Views | Sequence[AbstractCamera | str],
    *,
    trainable: Sequence[str] | PyTree | None = None,
    sigma: float = 0.01,
    integrator: AbstractIntegrator | None = None,
) -> Uncertainty:
    """Computes which leaves a set of pictures determines, and how well: Fisher's information.

    The pictures themselves do not matter: the Jacobian of their pixels at the scene does. So it
    plans pictures that are yet to be taken.

    **Arguments:**

    - `scene`: the scene.
    - `cameras`: cameras, or paths of cameras in the scene; or views, whose weights count.
    - `trainable`: paths (see `select`) or a tree of booleans; by default every floating leaf that
      is not frozen. Keyword only, as is all that follows.
    - `sigma`: the standard deviation of the noise of each pixel and channel.
    - `integrator`: the integrator; by default the scene's own.

    **Returns:**

    Standard errors by path (the bound of Cramér and Rao), rank, covariance, and the directions
    that the pictures do not determine.

    **Errors:**

    `ValueError` if nothing is trainable, and for a path at which there is no camera.

    Example: a ball of one colour may turn as it likes.

    ```python
    shape = sg.Transformed(sg.Surface(sg.Sphere(), sg.Constant([1, 0, 0])), sg.Similarity())
    scene = sg.Scene(sg.Group(ball=shape))
    camera = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 12)
    print(sg.diagnostics.fisher(scene, [camera], trainable=["ball.rotation"]).table())
    ```
    """
    if not isinstance(cameras, Views):
        sizes = [find_camera(scene, camera) for camera in cameras]
        blank = [jnp.zeros((one.height, one.width, 3)) for one in sizes]
        cameras = views(list(cameras), blank, space=Linear())
    # Information J^T J / sigma^2, and its inverse, the covariance: no colour is in either.
    return linear_uncertainty(scene, cameras, trainable, sigma, integrator)
