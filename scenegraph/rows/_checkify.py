"""Maps over rows under `jax.experimental.checkify`, which looks for NaN in their results, too."""

from functools import partial

from .._jax import checkify_rules, nan_error_check, Primitive


def check_results(primitive: Primitive) -> None:
    """Has `checkify` look for NaN in what a map returns.

    Not within: what is computed there is also computed where it does not count, and divides by zero
    there. Checks that a function makes itself have effects, and are never within a map.
    """
    if checkify_rules is not None and nan_error_check is not None:
        checkify_rules[primitive] = partial(nan_error_check, primitive)
