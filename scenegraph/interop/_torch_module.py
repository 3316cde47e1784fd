# pyright: reportMissingImports=false
"""The torch half of the bridge; only `as_torch_module` imports it."""

from operator import attrgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import torch

from .._typing import Array, PyTree
from ..scene import named_leaves
from ._jax_function import apply_vjp, evaluate, JaxFunction, value_and_vjp
from ._tensors import common_device, to_array, to_tensor


class TorchModule(torch.nn.Module):
    """A function of a JAX model, of which the leaves in `free` are parameters."""

    def __init__(self, function: JaxFunction, free: PyTree):
        torch.nn.Module.__init__(self)
        self._function = function
        taken = set(dir(self))
        names = [_register(self, path, leaf, taken) for path, leaf, _ in named_leaves(free)]
        # A tree of names rather than a tree structure, which Python cannot copy.
        self._names = jax.tree.unflatten(jax.tree.structure(free), names)

    def forward(self, *arguments: Any) -> torch.Tensor:
        """Calls the function; tensors among the arguments, or within tuples and such, as arrays."""
        values, structure = jax.tree.flatten((self._free(), arguments))
        device = common_device(values)
        wanted = any(isinstance(x, torch.Tensor) and x.requires_grad for x in values)
        if torch.is_grad_enabled() and wanted:
            return _Call.apply(self._function, structure, device, *values)
        inputs = jax.tree.unflatten(structure, map(to_array, values))
        return to_tensor(evaluate(self._function, inputs), device)

    def model(self) -> Any:
        """Returns the model with the parameters' present values, for JAX and for `save`."""
        free = jax.tree.map(lambda value: jnp.copy(to_array(value)), self._free())
        return eqx.combine(jax.block_until_ready(free), self._function.fixed)

    def _free(self) -> PyTree:
        # Looked up anew at every call: torch's own tools replace parameters by other tensors.
        return jax.tree.map(lambda name: attrgetter(name)(self), self._names)


class _Call(torch.autograd.Function):
    """A call that prepares a gradient."""

    @staticmethod
    def forward(
        ctx: Any, function: JaxFunction, structure: Any, device: torch.device, *values: Any
    ) -> torch.Tensor:
        inputs = jax.tree.unflatten(structure, map(to_array, values))
        wanted = jax.tree.unflatten(structure, ctx.needs_input_grad[3:])
        # Waits for all of it: torch may overwrite the inputs as soon as this returns.
        value, vjp = jax.block_until_ready(value_and_vjp(function, inputs, wanted))
        ctx.vjp, ctx.structure, ctx.device = vjp, structure, device
        return to_tensor(value, device)

    @staticmethod
    def backward(ctx: Any, *cotangent: torch.Tensor) -> tuple:
        # Torch's own `once_differentiable` would let most second derivatives be zero.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "torch cannot take second derivatives (`create_graph`) of a JAX function; take "
                "them in JAX, and make a module of the result."
            )
        cotangents = jax.block_until_ready(apply_vjp(ctx.vjp, to_array(cotangent[0])))
        each = ctx.structure.flatten_up_to(cotangents)
        return None, None, None, *(x if x is None else to_tensor(x, ctx.device) for x in each)


def _register(module: torch.nn.Module, path: str, leaf: Array, taken: set[str]) -> str:
    """Makes a parameter in nested modules, as names have no dots in torch; returns its path."""
    *outer, last = [f"{name}_" if name in taken else name or "leaf" for name in path.split(".")]
    for name in outer:
        if name not in dict(module.named_children()):
            module.add_module(name, torch.nn.Module())
        module = module.get_submodule(name)
    value = to_tensor(jnp.copy(leaf), torch.device("cpu")).clone()
    module.register_parameter(last, torch.nn.Parameter(value))
    return ".".join([*outer, last])
