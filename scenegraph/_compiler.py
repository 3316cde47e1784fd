"""A setting of XLA that must be made before its first use."""

import importlib.metadata
import os
import warnings

from jax._src import xla_bridge


# These offload reductions on CPUs to a library that gives silently wrong sums of many short rows
# (https://github.com/jax-ml/jax/issues/39103): at the wrong picture size, half a picture;
# and that finds no NaN among thousands of numbers, of which the greatest or least is asked.
_WRONG_REDUCTIONS = ("0.10.2", "0.11.0", "0.11.1", "0.11.2")
_OPTION = "--xla_cpu_experimental_ynn_fusion_type"


def avoid_wrong_reductions() -> None:
    """Keeps XLA's own reductions on CPUs where those that replaced them are wrong.

    An `XLA_FLAGS` that says something on the matter goes before. It warns if JAX has computed
    something already, because then it is too late.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    version = importlib.metadata.version("jaxlib")
    if version not in _WRONG_REDUCTIONS or _OPTION in flags:
        return
    os.environ["XLA_FLAGS"] = f"{flags} {_OPTION}=-reduce".strip()
    if xla_bridge.backends_are_initialized():
        warnings.warn(
            f"on a CPU, jaxlib {version} computes some sums wrongly, and JAX was used "
            "before scenegraph could switch that off. Import scenegraph before the first JAX "
            f"computation, or set XLA_FLAGS={_OPTION}=-reduce in the environment.",
            stacklevel=3,
        )
