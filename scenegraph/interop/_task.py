"""The half of the bridge that JAX sees: three compiled functions.

What they return shares no memory with what they take. Those are tensors' bytes, which torch may
write over once the call is done, and a module's own arrays, over which it must not write.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, PyTree
from ..images import Image
from ..numerics import unfreeze


class Task(NamedTuple):
    """What a torch module computes: the function, the leaves that torch does not have, the axes."""

    function: Callable
    held: PyTree
    layout: str


@eqx.filter_jit
def evaluate(task: Task, inputs: PyTree) -> Array:
    """The value alone; `inputs` are the free leaves of the model and the function's arguments."""
    return _fresh(_run(task, inputs))


@eqx.filter_jit
def linearise(task: Task, inputs: PyTree, wanted: PyTree) -> tuple[Array, Callable]:
    """The value, and the function from its slope to that of the wanted inputs."""
    moving, still = eqx.partition(inputs, wanted)
    return _fresh(jax.vjp(lambda x: _run(task, eqx.combine(x, still)), moving))


@eqx.filter_jit
def pull_back(pull: Callable, slope: Array) -> PyTree:
    """The slope of the wanted inputs; `None` for the others."""
    return _fresh(pull(slope)[0])


def _run(task: Task, inputs: PyTree) -> Array:
    free, arguments = inputs
    model = unfreeze(eqx.combine(free, task.held))
    result = task.function(model, *arguments)
    return _last_axis_first(_numbers(result), task.layout)


def _numbers(result: Any) -> Array:
    numbers = result.rgb if isinstance(result, Image) else result
    if eqx.is_array(numbers) and jnp.issubdtype(numbers.dtype, jnp.floating):
        return numbers
    kind = numbers.dtype if eqx.is_array(numbers) else type(numbers).__name__
    raise TypeError(f"the function has to return an Image or a floating array; it returned {kind}.")


def _last_axis_first(picture: Array, layout: str) -> Array:
    if layout == "HWC":
        return picture
    if picture.ndim < 3:
        raise ValueError(f"layout 'CHW' is for pictures; the function returned {picture.shape}.")
    return jnp.moveaxis(picture, -1, -3)


def _fresh(tree: PyTree) -> PyTree:
    """Copies of arrays that may be handed through; XLA leaves out those that nothing needs."""
    return jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, tree)


# --- What takes the place of the function where there is none beside a Module


def call(model: Callable, *arguments: Any) -> Any:
    """Calls a model that is its own function."""
    return model(*arguments)


def _filter(model: Callable, picture: Array) -> Array:
    if picture.ndim < 3 or picture.shape[-1] != 3:
        raise ValueError(f"in layout 'HWC', a picture ends in axes H, W, 3; got {picture.shape}.")
    return _filter_each(model, picture)


def _filter_channels_first(model: Callable, picture: Array) -> Array:
    if picture.ndim < 3 or picture.shape[-3] != 3:
        raise ValueError(f"in layout 'CHW', a picture ends in axes 3, H, W; got {picture.shape}.")
    return _filter_each(model, jnp.moveaxis(picture, -3, -1))


def _filter_each(model: Callable, pictures: Array) -> Array:
    if not jnp.issubdtype(pictures.dtype, jnp.floating):
        kind = pictures.dtype
        raise TypeError(f"a picture has floating numbers; got {kind}: divide bytes by 255.")
    one = lambda rgb: model(Image(rgb)).rgb
    for _ in pictures.shape[:-3]:
        one = jax.vmap(one)
    return one(pictures)


FILTERS = {"HWC": _filter, "CHW": _filter_channels_first}
