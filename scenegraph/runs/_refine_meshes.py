"""Meshes of a scene, fitted to pictures: vertices, and texels or colours."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._typing import RandomKey
from ..fitting import AbstractCallback, fit
from ..integrators import AbstractIntegrator
from ..losses import mesh_edges
from ..optimizers import by_path, first_at_place, large_steps, welded
from ..pixels import Patches, RayBatches, Views
from ..scene import named_leaves, Scene


# The first steps of texels, and of vertices as a part of their bounds' longest side; both fall to a
# twentieth. Rays in a batch.
_TEXEL_STEP, _VERTEX_STEP, _LAST, RAYS = 5e-3, 1.5e-4, 0.05, 4096
# The weight of the Laplacian in the steps of vertices: details move by themselves.
_SMOOTHNESS = 1.0
_VERTICES = ".shape.vertices"
_COLORS = (
    ".shader.texels",
    ".shader.base.texels",
    ".shader.terms.texels",
    ".shape.colors",
)


def refine_meshes(
    scene: Scene,
    views: Views,
    steps: int,
    *,
    integrator: AbstractIntegrator | None = None,
    key: RandomKey | None = None,
    callbacks: Sequence[AbstractCallback] = (),
) -> Scene:
    """Fits the meshes of a scene to pictures: their vertices, texels and vertices' colours.

    Colours are those of surfaces that are an `ImageTexture`, `ViewDependent` or `VertexColor`
    without light, as the surfaces of fitted fields are. Vertices at one place stay together.

    **Arguments:**

    - `scene`: the scene, such as one from `meshing.mesh_volumes`.
    - `views`: the pictures.
    - `steps`: the number of steps, of 64 patches of 8 x 8 pixels each.
    - `integrator`: the integrator; by default the scene's. Keyword only, as is all that follows.
    - `key`: the key of the patches.
    - `callbacks`: the callbacks of `fit`.

    **Returns:**

    The scene with other vertices and colours.

    **Errors:**

    `ValueError` for a scene without meshes; and those of `fit`.

    **Source:** Nicolet et al. 2021 (`optimizers.large_steps`).
    """
    leaves = {path: leaf for path, leaf, frozen in named_leaves(scene) if not frozen}
    meshes = [x.removesuffix(_VERTICES) for x in leaves if x.endswith(_VERTICES)]
    if not meshes:
        raise ValueError("the scene has no meshes whose vertices could be fitted.")
    rules = {f"{name}{_VERTICES}": _vertex_steps(leaves, name, steps) for name in meshes}
    colors = [name + end for name in meshes for end in _COLORS if name + end in leaves]
    rules |= dict.fromkeys(colors, optax.adam(_falling(_TEXEL_STEP, steps)))
    result = fit(
        scene,
        RayBatches(views, size=RAYS, choice=Patches()),
        trainable=list(rules),
        optimizer=by_path(rules),
        integrator=integrator,
        steps=steps,
        key=jax.random.key(0) if key is None else key,
        callbacks=callbacks,
    )
    return result.scene


def _vertex_steps(leaves: dict, name: str, steps: int) -> optax.GradientTransformation:
    """Returns the optimiser of a mesh's vertices."""
    vertices = np.asarray(leaves[f"{name}{_VERTICES}"])
    faces = first_at_place(vertices)[np.asarray(leaves[f"{name}.shape.faces"])]
    size = float(np.max(np.ptp(vertices, axis=0)))
    smooth = large_steps(mesh_edges(jnp.asarray(faces)), 1.0, smoothness=_SMOOTHNESS)
    falling = optax.scale_by_schedule(_falling(_VERTEX_STEP * size, steps))
    return welded(optax.chain(smooth, falling), jnp.asarray(vertices))


def _falling(first: float, steps: int) -> optax.Schedule:
    return optax.cosine_decay_schedule(first, max(steps, 1), _LAST)
