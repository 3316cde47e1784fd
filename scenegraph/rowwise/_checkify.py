"""Maps over rows under `jax.experimental.checkify`, which looks for NaN in their results, too."""

from functools import partial

# The rules of primitives are on no public page.
from jax._src.checkify import error_checks, nan_error_check
from jax.extend.core import Primitive


def check_results(primitive: Primitive) -> None:
    """Has `checkify` look for NaN in what a map returns.

    Not within: what is computed there is also computed where it does not count, and divides by zero
    there. Checks that a function makes itself have effects, and are never within a map.
    """
    error_checks[primitive] = partial(nan_error_check, primitive)
