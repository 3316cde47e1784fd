import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, ScalarLike
from ..flat import flatten
from ..integrators import nearest_hits
from ..numerics import as_type, common_type, safe_normalise
from ..parallel import with_automatic_axes
from ..rays import Hit, Ray
from ..scene import check_leaves, Scene
from ._warnings import is_traced


def cast_rays(
    scene: Scene,
    origins: Float[Array, "rays 3"],
    directions: Float[Array, "rays 3"],
    *,
    footprints: Float[Array, "rays 2 3"] | None = None,
    near: ScalarLike = 0.0,
    far: ScalarLike = jnp.inf,
) -> Hit:
    """Finds the nearest surface on each of any rays: a query of the scene's geometry.

    Rays need not go together, as those of a picture do. All surfaces count, whatever their opacity;
    volumes do not. Faces of meshes are found through clusters of them. Nothing has a budget, so
    that no ray is left out. The search takes no derivatives; what it found is then computed with
    them, also under `jit`, `vmap` and `grad`.

    **Arguments:**

    - `scene`: the scene.
    - `origins`: the points at which the rays begin, in world coordinates, `rays 3`.
    - `directions`: the rays' directions, of any length but zero, in world units, `rays 3`.
    - `footprints`: derivatives of the directions by a pixel's x and y, `rays 2 3`; by default zero:
      rays are infinitely thin. Keyword only argument.
    - `near`, `far`: the bounds of the rays, in lengths of their directions; leave a surface at
      which rays begin by a `near` above zero. Keyword only arguments.

    **Returns:**

    The nearest hits, with a leading axis over rays. `t` counts lengths of the direction, and is
    infinite for a ray that hits nothing; the rest is then zero. `coverage` is the part of the
    footprint that the surface stops, or of a mesh the triangle, and for thin rays its opacity.
    `surface` is the number of the surface, which `sg.surface_paths` names, copies of an `Instances`
    included; `face` is the row of the triangle in the mesh's `faces`, and `barycentric` the shares
    of that row's vertices in the point. Both numbers are -1 where there is none.

    **Errors:**

    `ValueError` for directions without length, and for numbers that are not finite.

    Example: the height of a ball above points of a floor.

    ```python
    ball = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere([0.0, 0.0, 2.0]), [1.0, 0.0, 0.0])))
    points = jnp.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    hits = sg.cast_rays(ball, points, jnp.array([[0.0, 0.0, 1.0]] * 2))
    print(hits.t)  # 1 and infinity
    print(hits.surface, sg.surface_paths(ball))  # 0 and -1; ball
    ```
    """
    check_leaves(scene)
    _check(origins, directions)
    dtype = common_type(scene, origins, directions)
    origins, directions = origins.astype(dtype), directions.astype(dtype)
    sides = jnp.zeros((*origins.shape[:1], 2, 3), dtype)
    footprints = sides if footprints is None else footprints.astype(dtype)
    ends = (jnp.broadcast_to(jnp.asarray(x, origins.dtype), origins.shape[:1]) for x in (near, far))
    rays = Ray(origins, directions, safe_normalise(directions), sides, footprints, *ends)
    return _cast(scene, rays)


@eqx.filter_jit
def _cast(scene: Scene, rays: Ray) -> Hit:
    def compute(tree: tuple[Scene, Ray]) -> Hit:
        scene, rays = tree
        return nearest_hits(as_type(flatten(scene), rays.near.dtype), rays)

    return with_automatic_axes(compute, (scene, rays))


def _check(origins: Array, directions: Array) -> None:
    """Refuses rays that are no rays, where their numbers are known."""
    if is_traced((origins, directions)):
        return
    for name, values in (("origins", origins), ("directions", directions)):
        if not bool(jnp.all(jnp.isfinite(values))):
            row = int(jnp.argmin(jnp.all(jnp.isfinite(values), axis=1)))
            raise ValueError(f"`{name}` must be finite; got {values[row]} in row {row}.")
    zero = jnp.all(directions == 0, axis=1)
    if bool(jnp.any(zero)):
        raise ValueError(f"`directions` must not be zero; row {int(jnp.argmax(zero))} is.")
