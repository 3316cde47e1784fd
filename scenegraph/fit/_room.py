"""Fields that are empty in places: how much room their samples have, and looking again."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, RandomKey
from ..data import Batch, Pixels
from ..integrators import AbstractIntegrator, budget_of, choose_integrator, with_room
from ..losses import LossTerms
from ..numerics import unfreeze
from ..render import render_rays
from ..scene import has_occupancy, refresh_occupancy, Scene
from ._feed import traceable
from ._loss import cones, RenderLoss
from ._state import FitState


# Steps between two looks at the occupancy.
_EVERY = 16
# More room than the last batch needed, because the next may need more.
_SPARE = 1.2
# A smaller budget is worth its compilation from this part of the present one on.
_WORTH = 0.5
# Steps between two looks at whether less room would do.
_PATIENCE = 256


def shares_room(loss: Any, model: PyTree) -> bool:
    """Whether the samples of a batch share a budget.

    **Arguments:**

    - `loss`: as for `step`.
    - `model`: the scene, or any Module.

    **Returns:**

    True for a `RenderLoss` with such an integrator.
    """
    if not isinstance(loss, RenderLoss) or not isinstance(model, Scene):
        return False
    return budget_of(_integrator(loss, model)) is not None


def _integrator(loss: RenderLoss, scene: Scene) -> AbstractIntegrator:
    return loss.integrator or choose_integrator(unfreeze(scene))


def first_room(loss: Any, state: FitState, batches: Any) -> Any:
    """A loss whose budget suits the first batch.

    **Arguments:**

    - `loss`: as for `step`.
    - `state`: to begin with.
    - `batches`: with a method `batch(seed, step)`.

    **Returns:**

    The loss; the same where samples share no budget.
    """
    if not shares_room(loss, state.model):
        return loss
    asked = _asked(loss, state.model, traceable(batches), state.key)
    return _with_room(loss, state.model, float(asked))


@eqx.filter_jit
def _asked(loss: RenderLoss, scene: Scene, batches: Any, key: RandomKey) -> jax.Array:
    """How many samples a ray of a batch asks for."""
    batch: Batch = batches.batch(0, 0)
    rays = cones(batch.rays, scene) if isinstance(batch.rays, Pixels) else batch.rays
    asked = render_rays(scene, rays, _integrator(loss, scene), key=key)[-1].asked
    return jnp.zeros(()) if asked is None else jnp.mean(asked, dtype=jnp.float32)


def _with_room(loss: RenderLoss, scene: Scene, asked: float) -> RenderLoss:
    integrator = with_room(_integrator(loss, scene), _SPARE * asked)
    return dataclasses.replace(loss, integrator=integrator)


def next_room(loss: Any, state: FitState) -> Any:
    """A loss with more room if the last batch found too little, or with less if it needs less.

    **Arguments:**

    - `loss`: from `first_room`, which has decided on an integrator where samples share a budget.
    - `state`: after a step that is done.

    **Returns:**

    The loss, which changes seldom: every budget is compiled once.
    """
    # Called at every step: nothing here may look through the scene.
    terms, integrator = state.extra, getattr(loss, "integrator", None)
    now = None if integrator is None else budget_of(integrator)
    if now is None or not isinstance(terms, LossTerms) or not int(state.step):
        return loss
    short = float(terms.left_out) > 0
    if not short and int(state.step) % _PATIENCE:
        return loss
    other = _with_room(loss, state.model, max(float(terms.asked), now * short))
    budget = budget_of(_integrator(other, state.model)) or 0
    return other if budget > now or budget <= _WORTH * now else loss


def look_again(state: FitState, number: int) -> FitState:
    """The state with its scene's occupancies refreshed, every so many steps.

    **Arguments:**

    - `state`: after a step.
    - `number`: of the step.

    **Returns:**

    The state.
    """
    nodes = jax.tree.leaves(state.model, is_leaf=has_occupancy)
    if number % _EVERY or not any(has_occupancy(node) for node in nodes):
        return state
    return dataclasses.replace(state, model=_refresh(state.model, state.key, state.step))


@eqx.filter_jit
def _refresh(model: PyTree, key: RandomKey, number: Int[Array, ""]) -> PyTree:
    key = jax.random.fold_in(jax.random.fold_in(key, 2), number)
    return refresh_occupancy(model, key=key)
