from collections.abc import Callable, Sequence
from typing import Any, Literal, TYPE_CHECKING

import equinox as eqx

from .._typing import PyTree
from ..filters import AbstractFilter
from ..scene import select, trainable_leaves
from ._jax_function import call, FILTERS, JaxFunction


if TYPE_CHECKING:
    from ._torch_module import TorchModule
else:  # importing it needs PyTorch
    TorchModule = Any


def as_torch_module(
    function: Callable,
    model: PyTree | None = None,
    *,
    trainable: PyTree | None = None,
    layout: Literal["HWC", "CHW"] = "HWC",
) -> TorchModule:
    """Makes a PyTorch module of a differentiable function, a filter, or any callable Module.

    Chosen leaves become parameters, named by their paths. A call compiles once for every shape; it
    prepares a gradient only where torch requires one.

    **Arguments:**

    - `function`: a function, called as `function(model, *inputs)`, that returns an `Image`, of
      which the module returns the colours, or a floating array. Without a `model` it is called as
      `function(*inputs)`, and may be a Module itself. A filter takes one picture or a batch of
      them, in sRGB numbers.
    - `model`: a scene or any other tree; `function` gets it without its `Frozen` wrappers.
    - `trainable`: the leaves that become parameters: a path or several, as in `select`, or a tree
      of booleans; by default every floating leaf that is not frozen. Keyword only argument.
    - `layout`: the order of the axes of pictures that a filter takes and that any module returns:
      `"HWC"`, as here, or `"CHW"`, as in torch. Further inputs of a function are passed unchanged.
      Keyword only argument.

    **Returns:**

    A `torch.nn.Module` that is called with the inputs; tensors among them reach the function as
    arrays. Its method `model()` returns the model with the parameters' present values.

    **Errors:**

    `ImportError` without PyTorch (the extra `torch`); `ValueError` for a path that matches nothing.
    Calling the module raises `TypeError` for a picture of integers and for float64 tensors while
    JAX has no float64, and `ValueError` for a picture of the wrong shape and tensors on several
    devices.

    Example: a step towards the exponent of a photograph.

    ```python
    gamma = sg.as_torch_module(sg.Gamma(1.0), layout="CHW")
    optimizer = torch.optim.Adam(gamma.parameters(), lr=0.1)  # of gamma.exponent
    torch.mean((gamma(picture) - target) ** 2).backward()
    optimizer.step()
    ```
    """
    module = _import_module()
    if layout not in FILTERS:
        raise ValueError(f"`layout` must be 'HWC' or 'CHW'; got {layout!r}.")
    if model is None:
        filtering = isinstance(function, AbstractFilter)
        function, model = (FILTERS[layout] if filtering else call), function
    free, fixed = eqx.partition(model, _selected(model, trainable))
    return module(JaxFunction(function, fixed, layout), free)


def _import_module() -> type["TorchModule"]:
    try:
        from ._torch_module import TorchModule
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = "as_torch_module needs PyTorch: pip install scenegraph[torch]"
        raise ImportError(message) from error
    return TorchModule


def _selected(model: PyTree, trainable: PyTree | None) -> PyTree:
    if trainable is None:
        return trainable_leaves(model)
    patterns = [trainable] if isinstance(trainable, str) else trainable
    if isinstance(patterns, Sequence) and all(isinstance(x, str) for x in patterns):
        return select(model, *patterns)
    return trainable
