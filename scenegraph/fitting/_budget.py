"""Sample budgets that the rays of a batch share, and occupancies that a fit refreshes."""

import dataclasses
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, PyTree
from ..data import Batch
from ..flat import flatten as flatten_scene
from ..integrators import (
    AbstractIntegrator,
    choose_integrator,
    count_requested,
    is_of_surfaces,
    with_more_surfaces,
)
from ..losses import LossTerms
from ..pixels import ScenePixels
from ..rendering import fold_keys
from ..scene import has_occupancy, refresh_occupancy, Scene
from ._flat import Flat, flatten
from ._keys import Keys
from ._loss import pixel_cones, RenderLoss, scene_cameras
from ._state import FitState


# Steps between two refreshes of the occupancy, at first and at last, and the unit of steps after
# whose second, fourth and eighth these double: what is empty changes less and less.
_REFRESH_EVERY, _REFRESH_SELDOM, _DOUBLING = 16, 128, 1600
# More than the last batch requested, because the next may request more; more yet where one did.
_MARGIN, _MARGIN_AFTER_OVERFLOW = 1.15, 1.4
# A smaller budget is worth its compilation from this part of the present one on.
_SHRINK = 0.8
# So small a part of a batch may be left out: a larger budget is not worth its compilation.
_FEW = 0.01
# Steps between two checks whether a smaller budget would do.
_SHRINK_EVERY = 256
# The part of a step's time that goes with its samples, about.
_BY_SAMPLES = 0.7


def loss_budget(loss: Any) -> int:
    """Returns how many samples a ray has on average; 0 where rays share no budget."""
    integrator = getattr(loss, "integrator", None)
    if integrator is None or (isinstance(loss, RenderLoss) and loss.is_packed):
        return 0
    return integrator.budget or 0


def shares_budget(loss: Any, model: PyTree) -> bool:
    """Returns true if the samples of a batch share a budget."""
    if not isinstance(loss, RenderLoss) or not isinstance(model, Scene):
        return False
    integrator = _integrator(loss, model)
    packed = dataclasses.replace(loss, integrator=integrator).is_packed
    return integrator.budget is not None and not packed


def with_first_budget(loss: Any, state: FitState, batches: Any) -> Any:
    """Returns the loss with the state's budget, or with one that suits the first batch."""
    if not shares_budget(loss, state.model):
        return _with_integrator(loss, state.model)
    samples = int(state.budget)
    if not samples:
        batch = batches.batch(state.keys.seed(), 0)
        samples = _MARGIN * float(_requested(loss, state.model, batch, state.keys))
    return _with_budget(loss, _integrator(loss, state.model), samples)


def with_next_budget(loss: Any, terms: Any, number: int, rays: int) -> Any:
    """Returns the loss with a larger budget after an overflow, with a smaller one if that would do.

    The terms are those of step `number` of a batch of so many rays, which is done. Budgets change
    seldom, because each is compiled once.
    """
    now = loss_budget(loss)
    if not number or not isinstance(terms, LossTerms):
        return loss
    if not now:
        return _with_more_surfaces(loss, terms)
    overflowed = float(terms.left_out) > _FEW * rays
    if not overflowed and number % _SHRINK_EVERY:
        return loss
    # A mean below the budget may overflow it too, on one of several devices or blocks.
    margin = _MARGIN_AFTER_OVERFLOW if overflowed else _MARGIN
    samples = margin * max(float(terms.requested), now * overflowed)
    other = _with_budget(loss, loss.integrator, samples)
    budget = loss_budget(other)
    return other if budget > now or budget <= _SHRINK * now else loss


def is_worth_compiling(now: int, other: int, compile_seconds: float, seconds_left: float) -> bool:
    """Returns true if another budget is worth its compilation in the time that a fit has left.

    Budgets are 0 where rays share none, and have more layers instead.
    """
    if other >= now:
        return 2 * compile_seconds < seconds_left
    # The samples' part of a step's time, times how many fewer there are.
    saved = _BY_SAMPLES * (1 - other / now)
    return compile_seconds < saved * seconds_left


def _with_integrator(loss: Any, model: PyTree) -> Any:
    """Returns the loss with the integrator of a scene of surfaces, which may need more layers."""
    if not isinstance(loss, RenderLoss) or not isinstance(model, Scene):
        return loss
    integrator = _integrator(loss, model)
    if not is_of_surfaces(integrator):
        return loss
    return dataclasses.replace(loss, integrator=integrator)


def _with_more_surfaces(loss: Any, terms: LossTerms) -> Any:
    """Returns the loss with more layers, if rays were left out for want of them."""
    if not isinstance(loss, RenderLoss) or loss.integrator is None:
        return loss
    if not is_of_surfaces(loss.integrator) or not float(terms.left_out) > 0:
        return loss
    more = with_more_surfaces(loss.integrator)
    return loss if more == loss.integrator else dataclasses.replace(loss, integrator=more)


def needs_refresh(model: PyTree) -> bool:
    """Returns true if a scene has an occupancy."""
    return any(map(has_occupancy, jax.tree.leaves(model, is_leaf=has_occupancy)))


class OccupancyRefresh:
    """Refreshes occupancies every so many steps.

    On one device it is compiled in a thread, while the first steps are taken.
    """

    def __init__(self, *, one_device: bool = True):
        self._compiling: Future[Any] | None = None
        self._one_device = one_device

    def __call__(self, state: Flat, number: int) -> Flat:
        """Returns the state after `number` steps, refreshed if that is due."""
        if self._compiling is None and self._one_device:
            pool = ThreadPoolExecutor(1, "scenegraph-compiler")
            self._compiling = pool.submit(_refresh.lower(state).compile)
            pool.shutdown(wait=False)
        if number % _refresh_every(number):
            return state
        return _refresh(state) if self._compiling is None else self._compiling.result()(state)


def _refresh_every(number: int) -> int:
    """Returns how many steps lie between refreshes about a step, a power of two."""
    # 16 up to step 3200, 32 up to 6400, and so on
    doublings = max(number // _DOUBLING, 1).bit_length() - 1
    return min(_REFRESH_EVERY << doublings, _REFRESH_SELDOM)


@jax.jit
def _refresh(state: Flat) -> Flat:
    before: FitState = state.tree
    key = jax.random.fold_in(before.keys.occupancy, before.step)
    return flatten(dataclasses.replace(before, model=refresh_occupancy(before.model, key=key)))


def _integrator(loss: RenderLoss, scene: Scene) -> AbstractIntegrator:
    return choose_integrator(scene, loss.integrator)


def _with_budget(loss: RenderLoss, integrator: AbstractIntegrator, samples: float) -> RenderLoss:
    return dataclasses.replace(loss, integrator=integrator.with_budget(samples))


@eqx.filter_jit
def _requested(loss: RenderLoss, scene: Scene, batch: Batch, keys: Keys) -> Float[Array, ""]:
    """Returns how many samples a ray of a batch requests on average."""
    rays = batch.rays
    if isinstance(rays, ScenePixels):
        rays = pixel_cones(rays, scene_cameras(rays, scene))
    own = fold_keys(keys.budget, jnp.arange(rays.near.shape[0]))
    requested = count_requested(_integrator(loss, scene), flatten_scene(scene), rays, own)
    return jnp.zeros(()) if requested is None else jnp.mean(requested, dtype=jnp.float32)
