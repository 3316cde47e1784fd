"""The JAX half of the bridge: three compiled functions.

Their results share no memory with their arguments. Those are tensors' bytes, which torch may
overwrite once the call is done, and a module's own arrays, which torch must not overwrite.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, PyTree
from ..images import Image
from ..scene import open_scene


class JaxFunction(NamedTuple):
    """A function, the leaves of its model that are no parameters of torch, and the axes' order."""

    function: Callable
    fixed: PyTree
    layout: str


@eqx.filter_jit
def evaluate(function: JaxFunction, inputs: PyTree) -> Array:
    """Computes the value; `inputs` are the model's free leaves and the function's arguments."""
    return _copied(_run(function, inputs))


@eqx.filter_jit
def value_and_vjp(function: JaxFunction, inputs: PyTree, wanted: PyTree) -> tuple[Array, Callable]:
    """Computes the value, and the function from its cotangent to those of the wanted inputs."""
    moving, still = eqx.partition(inputs, wanted)
    return _copied(jax.vjp(lambda x: _run(function, eqx.combine(x, still)), moving))


@eqx.filter_jit
def apply_vjp(vjp: Callable, cotangent: Array) -> PyTree:
    """Computes the cotangents of the wanted inputs; `None` for the others."""
    return _copied(vjp(cotangent)[0])


def _run(function: JaxFunction, inputs: PyTree) -> Array:
    free, arguments = inputs
    model = open_scene(eqx.combine(free, function.fixed))
    result = function.function(model, *arguments)
    numbers = result.rgb if isinstance(result, Image) else result
    if not (eqx.is_array(numbers) and jnp.issubdtype(numbers.dtype, jnp.floating)):
        kind = numbers.dtype if eqx.is_array(numbers) else type(numbers).__name__
        raise TypeError(
            f"the function must return an Image or a floating array; it returned {kind}."
        )
    if function.layout == "HWC":
        return numbers
    if numbers.ndim < 3:
        raise ValueError(f"layout 'CHW' is for pictures; the function returned {numbers.shape}.")
    return jnp.moveaxis(numbers, -1, -3)


def _copied(tree: PyTree) -> PyTree:
    # XLA leaves out the copies of arrays that are not passed through.
    return jax.tree.map(lambda x: jnp.copy(x) if eqx.is_array(x) else x, tree)


# --- The functions of models that are called themselves


def call(model: Callable, *arguments: Any) -> Any:
    """Calls a model that is its own function."""
    return model(*arguments)


def _filter_hwc(model: Callable, pictures: Array) -> Array:
    if pictures.ndim < 3 or pictures.shape[-1] != 3:
        raise ValueError(f"layout 'HWC' needs pictures with axes H, W, 3; got {pictures.shape}.")
    return _filter(model, pictures)


def _filter_chw(model: Callable, pictures: Array) -> Array:
    if pictures.ndim < 3 or pictures.shape[-3] != 3:
        raise ValueError(f"layout 'CHW' needs pictures with axes 3, H, W; got {pictures.shape}.")
    return _filter(model, jnp.moveaxis(pictures, -3, -1))


def _filter(model: Callable, pictures: Array) -> Array:
    if not jnp.issubdtype(pictures.dtype, jnp.floating):
        kind = pictures.dtype
        raise TypeError(f"a picture must have floating numbers; got {kind}: divide bytes by 255.")
    one = lambda rgb: model(Image(rgb)).rgb
    for _ in pictures.shape[:-3]:
        one = jax.vmap(one)
    return one(pictures)


FILTERS = {"HWC": _filter_hwc, "CHW": _filter_chw}
