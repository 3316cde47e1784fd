"""Fields that are empty in places: how much room their samples have, and looking again."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import PyTree
from ..data import Batch, Pixels
from ..integrators import AbstractIntegrator, budget_of, choose_integrator, with_room
from ..losses import LossTerms
from ..numerics import unfreeze
from ..rendering import render_rays
from ..scene import has_occupancy, refresh_occupancy, Scene
from ._feed import traceable
from ._flat import Flat, flatten
from ._keys import Keys
from ._loss import cones, RenderLoss
from ._state import FitState


# Steps between two looks at the occupancy.
_EVERY = 16
# More room than the last batch needed, because the next may need more.
_SPARE = 1.2
# A smaller budget is worth its compilation from this part of the present one on.
_WORTH = 0.7
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
    """A loss with the budget that the state remembers, or with one that suits the first batch.

    **Arguments:**

    - `loss`: as for `step`.
    - `state`: to begin with.
    - `batches`: with a method `batch(seed, step)`.

    **Returns:**

    The loss; the same where samples share no budget.
    """
    if not shares_room(loss, state.model):
        return loss
    if int(state.room):
        integrator = with_room(_integrator(loss, state.model), int(state.room))
        return dataclasses.replace(loss, integrator=integrator)
    known = traceable(batches, state.keys.seed())
    asked = _asked(loss, state.model, known, state.keys)
    return _with_room(loss, state.model, float(asked))


@eqx.filter_jit
def _asked(loss: RenderLoss, scene: Scene, batches: Any, keys: Keys) -> jax.Array:
    """How many samples a ray of the first batch asks for."""
    batch: Batch = batches.batch(keys.seed(), 0)
    rays = cones(batch.rays, scene) if isinstance(batch.rays, Pixels) else batch.rays
    asked = render_rays(scene, rays, _integrator(loss, scene), key=keys.budget)[-1].asked
    return jnp.zeros(()) if asked is None else jnp.mean(asked, dtype=jnp.float32)


def _with_room(loss: RenderLoss, scene: Scene, asked: float) -> RenderLoss:
    integrator = with_room(_integrator(loss, scene), _SPARE * asked)
    return dataclasses.replace(loss, integrator=integrator)


def room_of(loss: Any) -> int:
    """The budget of a loss.

    **Arguments:**

    - `loss`: from `first_room` or `next_room`.

    **Returns:**

    Samples a ray; 0 where they share no budget.
    """
    integrator = getattr(loss, "integrator", None)
    return (None if integrator is None else budget_of(integrator)) or 0


def is_short(extra: Any, number: int) -> bool:
    """Whether the room is to be looked at: it was too little, or long ago found right.

    **Arguments:**

    - `extra`: what the loss told of a step that is done.
    - `number`: of the next step.

    **Returns:**

    True if `next_room` may have another answer.
    """
    if not isinstance(extra, LossTerms) or not number:
        return False
    return not number % _PATIENCE or float(extra.left_out) > 0


def next_room(loss: Any, state: FitState) -> Any:
    """A loss with more room if the last batch found too little, or with less if it needs less.

    **Arguments:**

    - `loss`: from `first_room`, which has decided on an integrator where samples share a budget.
    - `state`: after a step that is done.

    **Returns:**

    The loss, which changes seldom: every budget is compiled once.
    """
    terms, now = state.extra, room_of(loss)
    if not now or not is_short(terms, int(state.step)):
        return loss
    short = float(terms.left_out) > 0
    other = _with_room(loss, state.model, max(float(terms.asked), now * short))
    budget = room_of(other)
    return other if budget > now or budget <= _WORTH * now else loss


def looks_again(model: PyTree) -> bool:
    """Whether a scene has an occupancy that is to be refreshed.

    **Arguments:**

    - `model`: the scene, or any Module.

    **Returns:**

    True if so.
    """
    return any(map(has_occupancy, jax.tree.leaves(model, is_leaf=has_occupancy)))


def look_again(state: Flat, number: int) -> Flat:
    """The state with its scene's occupancies refreshed, every so many steps.

    **Arguments:**

    - `state`: after a step; its scene has an occupancy.
    - `number`: of the step.

    **Returns:**

    The state.
    """
    return state if number % _EVERY else _refresh(state)


@jax.jit
def _refresh(state: Flat) -> Flat:
    before: FitState = state.tree
    key = jax.random.fold_in(before.keys.occupancy, before.step)
    return flatten(dataclasses.replace(before, model=refresh_occupancy(before.model, key=key)))
