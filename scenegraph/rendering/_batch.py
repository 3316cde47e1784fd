"""Pictures of many worlds: scenes of one structure, or cameras of one scene, in one program."""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._jax import trace_state_clean
from .._typing import Array, Bool, Device, Int, PyTree, RandomKey
from ..cameras import AbstractCamera
from ..filters import AbstractFilter
from ..images import Image
from ..integrators import AbstractIntegrator, choose_integrator
from ..parallel import map_over_devices, with_automatic_axes
from ..scene import (
    check_leaves,
    find_camera,
    find_contents,
    is_stacked,
    named_leaves,
    Scene,
    stack_alike,
)
from ._pixels import ALWAYS
from ._render import (
    check_outputs,
    draw_completely,
    draw_picture,
    placed_on,
    with_first_layers,
)
from ._subpixels import parts_along_side
from ._warnings import is_traced, say_dark, user_depth


def render_batch(
    scenes: Scene | Sequence[Scene],
    cameras: AbstractCamera | Sequence[AbstractCamera] | str,
    integrator: AbstractIntegrator | None = None,
    *,
    key: RandomKey | None = None,
    filters: AbstractFilter | Sequence[AbstractFilter] = (),
    chunk: int | Literal["auto"] = "auto",
    devices: Sequence[Device] | None = None,
    outputs: Sequence[str] = ALWAYS,
    samples_per_pixel: int = 1,
) -> Image:
    """Renders a picture of every world of a batch, in one program.

    Worlds are scenes of one structure, such as the states of a simulation; or there is one scene,
    and many cameras. They are computed some at a time, and the time to compile does not grow with
    their number. Under `grad`, each chunk of worlds is computed again, so that a loss of all
    pictures needs no memory that grows with the number of worlds, beside scenes, cameras and
    pictures; that of `jax.vmap` of `render` grows with it.

    **Arguments:**

    - `scenes`: a scene whose arrays have a leading axis over worlds, as `jax.vmap` of a function
      that makes a scene returns it; or a list of scenes of one structure; or one scene for all
      cameras.
    - `cameras`: one camera for all worlds; or one whose arrays have a leading axis over worlds; or
      a list of cameras of one kind and size, one for every world; or the path of one in the scenes.
    - `integrator`: the integrator of all; by default the scenes' own, as in `render`.
    - `key`: the key of jitter and noise, folded by the number of the world; `None` is
      deterministic. Keyword only argument.
    - `filters`: a filter, or several in order, to apply to every picture. Keyword only argument.
    - `chunk`: the number of worlds that a device works on at a time; `"auto"` is one on
      a CPU, whose kernels use all threads for one world already, and about as many as have 2^18
      pixels together elsewhere. Memory grows with it. Keyword only argument.
    - `devices`: the devices that share the worlds; by default as in `render`. Keyword only
      argument.
    - `outputs`: names of the fields of the pictures to compute, as in `render`. Keyword only
      argument.
    - `samples_per_pixel`: the number of cones of every pixel, as in `render`. Keyword only
      argument.

    **Returns:**

    An `Image` whose arrays have a leading axis over worlds, `worlds height width 3` for `rgb`;
    `jax.tree.map(lambda x: x[i], images)` is picture number `i`.

    **Errors:**

    `ValueError` for no worlds, scenes of a list that differ in more than the values of their
    arrays, by the path of the first difference, arrays of unlike numbers of worlds, and what
    `render` refuses. Worlds with numbers that are not finite are counted in a warning; pictures of
    other worlds are not changed by them.

    Example: a ball at three places.

    ```python
    def world(x):
        ball = sg.Surface(sg.Sphere([x, 0.0, 0.0], 0.5), [0.9, 0.3, 0.2])
        return sg.Scene(sg.Group(ball=ball))


    scenes = jax.vmap(world)(jnp.array([-1.0, 0.0, 1.0]))
    place = [0.0, -4.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    eye = sg.PerspectiveCamera.look_at(*place, 0.9, 16, 12)
    images = sg.render_batch(scenes, eye)
    assert images.rgb.shape == (3, 12, 16, 3)
    ```
    """
    whole, eyes = _stacked(scenes, "scenes"), _stacked(cameras, "cameras")
    axes = is_stacked(whole), not isinstance(eyes, str) and is_stacked(eyes)
    worlds = _count_worlds(whole, eyes, axes)
    filters = (filters,) if isinstance(filters, AbstractFilter) else tuple(filters)
    extras, side = check_outputs(outputs), parts_along_side(samples_per_pixel)
    leaves = jax.tree.leaves(eqx.filter((whole, eyes), eqx.is_array))
    traced = is_traced(leaves) or not trace_state_clean()
    whole, eyes, mesh = placed_on(whole, eyes, None if traced else leaves, devices)
    more = axes, worlds, key, filters, chunk, mesh, extras, side
    if traced:

        def pictures(tree: PyTree) -> Image:
            return _draw_worlds(tree[0], tree[1], integrator, False, *more)[0]

        return with_automatic_axes(pictures, (whole, eyes))
    if axes[0]:
        _say_not_finite(whole, worlds)
    first = jax.tree.map(_first, whole) if axes[0] else whole
    contents = find_contents(first)
    chosen = with_first_layers(choose_integrator(first, integrator, contents), contents)
    if jax.tree.leaves(chosen):
        # Integrators with numbers of their own may differ from world to world.
        return _draw_worlds(whole, eyes, integrator, False, *more)[0]
    with_integrator = lambda integrator: _draw_worlds(whole, eyes, integrator, True, *more)
    return draw_completely(with_integrator, chosen, eqx.filter((whole, eyes), eqx.is_array))


@eqx.filter_jit
def _draw_worlds(
    scenes: Scene,
    cameras: AbstractCamera | str,
    integrator: AbstractIntegrator | None,
    is_chosen: bool,
    axes: tuple[bool, bool],
    worlds: int,
    key: RandomKey | None,
    filters: tuple[AbstractFilter, ...],
    chunk: int | Literal["auto"],
    mesh: Mesh | None,
    extras: tuple[str, ...],
    side: int,
) -> tuple[Image, Int[Array, ""] | None, Array | None]:
    """Returns the pictures of all worlds, the number of incomplete pixels, and of samples."""
    given = list(zip((scenes, cameras), axes, strict=True))
    varying = [x if varies else None for x, varies in given]
    shared = [None if varies else x for x, varies in given], key, filters, integrator

    def of_world(shared: tuple, row: tuple) -> tuple:
        (number, own), (same, key, filters, integrator) = row, shared
        scene, camera = (x if x is not None else y for x, y in zip(own, same, strict=True))
        check_leaves(scene)
        camera = find_camera(scene, camera)
        check_leaves(camera, "the camera")
        say_dark(scene)
        if not is_chosen:
            # What is not drawn again has space for all.
            integrator = choose_integrator(scene, integrator).with_budget(math.inf)
        key = None if key is None else jax.random.fold_in(key, number)
        return draw_picture(scene, camera, integrator, key, filters, "auto", None, extras, side)

    each = -(-worlds // (1 if mesh is None else mesh.size))
    camera = cameras if isinstance(cameras, AbstractCamera) else None
    size = _worlds_at_a_time(chunk, each, camera, side)
    draw_all = partial(_chunk_by_chunk, of_world, size)
    rows = jnp.arange(worlds, dtype=jnp.int32), varying
    image, missed, requested = map_over_devices(draw_all, shared, rows, mesh)
    missed = None if missed is None else jnp.sum(missed)
    return image, missed, None if requested is None else jnp.mean(requested)


# Pixels that are computed together on devices that want much work at a time. On CPUs a world has
# all threads. Measured on two cores, at 84 x 84 to 16 x 16: gradients are fastest one by one,
# pictures as fast or slower by a fifth.
_PIXELS = 2**18


def _worlds_at_a_time(
    chunk: int | Literal["auto"], worlds: int, camera: AbstractCamera | None, side: int
) -> int:
    if chunk == "auto":
        if camera is None or jax.default_backend() == "cpu":
            return 1
        chunk = max(1, _PIXELS // (camera.width * camera.height * side**2))
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f'`chunk` must be a positive integer or "auto"; got {chunk!r}.')
    return min(chunk, worlds)


def _chunk_by_chunk(
    function: Callable[[Any, Any], PyTree], size: int, shared: PyTree, rows: PyTree
) -> PyTree:
    """Computes some worlds at a time; under `grad`, chunks are rematerialised."""
    arrays, static = eqx.partition(rows, eqx.is_array)
    count = jax.tree.leaves(arrays)[0].shape[0]

    def of_row(row: PyTree) -> PyTree:
        return function(shared, eqx.combine(row, static))

    if size == 1:
        return jax.lax.map(jax.checkpoint(of_row, prevent_cse=False), arrays)
    # The last world fills up the last chunk.
    chunks = -(-count // size)
    number = jnp.minimum(jnp.arange(chunks * size), count - 1).reshape(chunks, size)
    whole = chunks * size == count
    cut = lambda x: x.reshape(chunks, size, *x.shape[1:]) if whole else x[number]
    of_chunk = jax.checkpoint(jax.vmap(of_row), prevent_cse=False)
    results = jax.lax.map(of_chunk, jax.tree.map(cut, arrays))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], results)


# --- What is given


def _stacked(given: Any, name: str) -> Any:
    """Stacks a list of scenes or cameras; what is none stays as it is."""
    if isinstance(given, Scene | AbstractCamera | str):
        return given
    if not given:
        raise ValueError(f"`{name}` is empty: there is no world to render.")
    return stack_alike(list(given), name)


def _count_worlds(scenes: Scene, cameras: AbstractCamera | str, axes: tuple[bool, bool]) -> int:
    """Returns the number of worlds, which all arrays with an axis over them have in common."""
    if not any(axes):
        raise ValueError(
            "neither `scenes` nor `cameras` has an axis over worlds: stack them, as `jax.vmap` of "
            "a function that makes a scene does, or give a list; `render` renders one picture."
        )
    given = zip(("scenes", "cameras"), (scenes, cameras), axes, strict=True)
    counts = [
        (name, path, jnp.shape(leaf)[:1])
        for name, tree, varies in given
        if varies
        for path, leaf, _ in named_leaves(tree)
    ]
    name, path, count = counts[0]
    for other, at, size in counts:
        if size != count:
            have = lambda size: f"{size[0]} worlds" if size else "no axis over worlds"
            raise ValueError(
                f"the arrays of a batch need one leading axis over worlds: {path!r} of `{name}` "
                f"has {have(count)}, {at!r} of `{other}` has {have(size)}."
            )
    if not count or count[0] == 0:
        raise ValueError(f"`{name}` has no worlds: the leading axis of {path!r} is empty.")
    return count[0]


def _first(leaf: Any) -> Any:
    # NumPy's: JAX would compile a program for every shape.
    return np.asarray(leaf)[0] if eqx.is_array(leaf) else leaf


# Worlds that a warning names.
_NAMED = 5


def _say_not_finite(scenes: Scene, worlds: int) -> None:
    """Warns of worlds with numbers that are not finite."""
    wrong, first = np.zeros(worlds, bool), None
    for path, leaf, _ in named_leaves(scenes):
        if not eqx.is_inexact_array(leaf):
            continue
        bad = _not_finite(leaf)
        if first is None and np.any(bad):
            first = path
        wrong |= bad
    if first is None:
        return
    numbers = np.flatnonzero(wrong)
    names = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
    warnings.warn(
        f"{len(numbers)} of {worlds} worlds have numbers that are not finite, the first of them in "
        f"{first!r}; do not use their pictures: {names}.",
        stacklevel=user_depth(),
    )


def _not_finite(leaf: Array) -> Bool[np.ndarray, " worlds"]:
    value = np.asarray(leaf)
    return ~np.all(np.isfinite(value.reshape(value.shape[0], -1)), axis=1)
