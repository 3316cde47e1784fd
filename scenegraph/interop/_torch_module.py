# pyright: reportMissingImports=false
"""The half of the bridge that torch sees; only `as_torch_module` imports it."""

from operator import attrgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import torch

from .._typing import Array, PyTree
from ..scene import named_leaves
from ._task import evaluate, linearise, pull_back, Task
from ._tensors import common_device, to_array, to_tensor


class TorchModule(torch.nn.Module):
    """A function of a JAX model, some of whose leaves are parameters.

    **Arguments:**

    - `task`: what is computed.
    - `free`: the model with nothing but the leaves that become parameters.
    """

    def __init__(self, task: Task, free: PyTree):
        torch.nn.Module.__init__(self)
        self._task = task
        taken = set(dir(self))
        names = [_register(self, path, leaf, taken) for path, leaf, _ in named_leaves(free)]
        # A tree of names, and not the structure of one, which Python cannot copy.
        self._names = jax.tree.unflatten(jax.tree.structure(free), names)

    def forward(self, *arguments: Any) -> torch.Tensor:
        """Calls the function.

        **Arguments:**

        - `arguments`: passed on; tensors among them, also within tuples and the like, as arrays.

        **Returns:**

        The colours of the picture, or the array, that the function returns.
        """
        values, structure = jax.tree.flatten((self._free(), arguments))
        device = common_device(values)
        if torch.is_grad_enabled() and any(map(_requires_grad, values)):
            return _Call.apply(self._task, structure, device, *values)
        inputs = jax.tree.unflatten(structure, map(to_array, values))
        return to_tensor(evaluate(self._task, inputs), device)

    def model(self) -> Any:
        """The model with the parameters' values of now, for JAX and for `save`.

        **Returns:**

        A tree like the one that the module was made of.
        """
        free = jax.tree.map(lambda value: jnp.copy(to_array(value)), self._free())
        return eqx.combine(jax.block_until_ready(free), self._task.held)

    def _free(self) -> PyTree:
        # Not the parameters of old: torch's own tools put other tensors in their place.
        return jax.tree.map(lambda name: attrgetter(name)(self), self._names)


class _Call(torch.autograd.Function):
    """A call whose gradient somebody may want."""

    @staticmethod
    def forward(
        ctx: Any, task: Task, structure: Any, device: torch.device, *values: Any
    ) -> torch.Tensor:
        inputs = jax.tree.unflatten(structure, map(to_array, values))
        wanted = jax.tree.unflatten(structure, ctx.needs_input_grad[3:])
        # Waits for all of it: torch may write over the inputs as soon as this returns.
        value, pull = jax.block_until_ready(linearise(task, inputs, wanted))
        ctx.pull, ctx.structure, ctx.device = pull, structure, device
        return to_tensor(value, device)

    @staticmethod
    def backward(ctx: Any, *slope: torch.Tensor) -> tuple:
        # Torch's own `once_differentiable` would let most second derivatives be zero.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "torch cannot take second derivatives (`create_graph`) of a JAX function; take "
                "them in JAX, and make a module of the result."
            )
        slopes = jax.block_until_ready(pull_back(ctx.pull, to_array(slope[0])))
        each = ctx.structure.flatten_up_to(slopes)
        return None, None, None, *(x if x is None else to_tensor(x, ctx.device) for x in each)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _register(module: torch.nn.Module, path: str, leaf: Array, taken: set[str]) -> str:
    """Makes a parameter in modules within modules: torch has no dots in names, but between them."""
    *outer, last = [f"{name}_" if name in taken else name or "leaf" for name in path.split(".")]
    for name in outer:
        if name not in dict(module.named_children()):
            module.add_module(name, torch.nn.Module())
        module = module.get_submodule(name)
    value = to_tensor(jnp.copy(leaf), torch.device("cpu")).clone()
    module.register_parameter(last, torch.nn.Parameter(value))
    return ".".join([*outer, last])
