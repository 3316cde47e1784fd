"""Other frameworks: a differentiable JAX function as a PyTorch module."""

from ._torch import as_torch_module as as_torch_module

from .._first_use import finish_import


finish_import(__name__)
