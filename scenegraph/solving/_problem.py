"""The problem that scene, pictures and options make up."""

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, IntLike, PyTree, RandomKey
from .._words import describe
from ..data import Annealing, RayBatches, Views
from ..filters import require_pixel_filter
from ..flat import color_space
from ..integrators import AbstractIntegrator, choose_integrator
from ..io import MappedArray
from ..pixels import in_stated_space, SceneCameras
from ..rendering import check_scene, choose_chunk
from ..scene import find_filter, Scene, ties
from ._residuals import FunctionResiduals, PictureResiduals
from ._robust import AbstractRobustLoss, LeastSquares
from ._system import Problem
from ._unknowns import Unknowns


# Samples of a block, over all forward derivatives.
_SAMPLES = 2**20


class Options(NamedTuple):
    """Arguments of `solve`, by which pictures are rendered and compared."""

    loss: AbstractRobustLoss = LeastSquares()
    integrator: AbstractIntegrator | None = None
    key: RandomKey | None = None
    annealing: Annealing | None = None
    pixels: IntLike | None = None
    filters: str | Sequence[str] = ()


def make_problem(
    scene: PyTree,
    views: Any,
    unknowns: Unknowns,
    paths: tuple[str, ...],
    options: Options,
) -> Problem:
    """Puts together residuals and derivatives."""
    sizes, count = np.asarray(unknowns.sizes()), unknowns.size()
    if not isinstance(views, Views):
        if not callable(views):
            raise TypeError(
                "`views` of `solve` must be `Views` (see `sg.views`) or a function of the scene "
                f"that returns residuals; got {describe(views)}."
            )
        if options.annealing is not None or options.pixels is not None or options.filters:
            raise TypeError("`annealing`, `pixels` and `filters` are for `Views`.")
        every = jnp.arange(count), jnp.full(count, -1)
        return Problem(FunctionResiduals(views), options.loss, *every, count)
    check_scene(scene)
    filters = _filter_paths(scene, views, options.filters)
    numbers, owner = _owners(scene, views, paths, filters)
    color, colors = _colors(np.repeat(owner, sizes))
    residuals = _picture_residuals(scene, views, options, numbers, colors)
    residuals = residuals._replace(filters=filters)
    owner = jnp.asarray(np.repeat(owner, sizes))
    return Problem(residuals, options.loss, jnp.asarray(color), owner, colors)


def _picture_residuals(
    scene: Scene, views: Views, options: Options, numbers: np.ndarray, colors: int
) -> PictureResiduals:
    integrator = choose_integrator(scene, options.integrator).with_budget(float("inf"))
    if isinstance(views.pixels, MappedArray):
        values = jnp.asarray(views.pixels.take(np.arange(views.pixels.shape[0])))
        views = dataclasses.replace(views, pixels=values)
    drawn = _drawn(views.pixels.shape[0], options.pixels)
    space, count = color_space(scene), drawn.size
    views = in_stated_space(views, space)
    size = choose_chunk("auto", count, integrator, samples_on_cpu=_SAMPLES // (1 + min(colors, 64)))
    # Blocks of like size, so that few rows are padding.
    size = -(-count // -(-count // size))
    batches = RayBatches(views, size, annealing=options.annealing, space=space)
    number = jnp.asarray(0)
    return PictureResiduals(batches, integrator, options.key, jnp.asarray(numbers), drawn, number)


def _drawn(count: int, pixels: IntLike | None) -> Array:
    """Draws some of all pixels, in their order, so that neighbours share blocks."""
    if pixels is None:
        return jnp.arange(count)
    if not 0 < (number := operator.index(pixels)):
        raise ValueError(f"`pixels` must be positive; got {number}.")
    rng = np.random.default_rng(0)
    return jnp.asarray(np.sort(rng.choice(count, min(number, count), replace=False)))


def _owners(
    scene: PyTree, views: Views, paths: tuple[str, ...], filters: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the camera of each picture, and of each leaf that moves the pixels of one alone."""
    if not isinstance(views.cameras, SceneCameras):
        return np.zeros(views.frames, np.int32), np.full(len(paths), -1)
    cameras = list(dict.fromkeys(views.cameras.paths))
    numbers = [cameras.index(path) for path in views.cameras.paths]
    # A camera moves its own pictures, a filter those that have gone through it. A leaf has an owner
    # if it moves the pictures of one camera alone, and no other leaf is tied to it.
    users = {camera: {i} for i, camera in enumerate(cameras)}
    for path, number in zip(filters, numbers, strict=False):
        users.setdefault(path, set()).add(number)
    shared = {leader for _, leader in ties(scene)}

    def owner(path: str) -> int:
        own = [used for name, used in users.items() if path.startswith(f"{name}.")]
        alone = path not in shared and len(own) == 1 and len(own[0]) == 1
        return next(iter(own[0])) if alone else -1

    return np.asarray(numbers, np.int32), np.asarray([owner(path) for path in paths])


def _filter_paths(scene: Scene, views: Views, filters: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the path of each picture's filter; refuses what filters no single pixels."""
    paths = (filters,) * views.frames if isinstance(filters, str) else tuple(filters)
    if paths and len(paths) != views.frames:
        raise ValueError(
            f"`filters` must be one path, or one for each of {views.frames} pictures; got "
            f"{len(paths)}."
        )
    found = {path: find_filter(scene, path) for path in dict.fromkeys(paths)}
    for path, one in found.items():
        require_pixel_filter(one, f"the filter {path!r} of `solve`")
    if len({jax.tree.structure(one) for one in found.values()}) > 1:
        raise ValueError("the filters of several pictures must be of one kind.")
    return paths


def _colors(owner: np.ndarray) -> tuple[np.ndarray, int]:
    """Numbers derivatives: one for each shared unknown, others shared by one of each camera."""
    color, used = np.zeros(owner.size, int), {}
    shared = int(np.sum(owner < 0))
    color[owner < 0] = np.arange(shared)
    for index in np.flatnonzero(owner >= 0):
        used[owner[index]] = used.get(owner[index], -1) + 1
        color[index] = shared + used[owner[index]]
    return color, int(color.max()) + 1
