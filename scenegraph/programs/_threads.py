"""Threads that share out turns: XLA has one core do most of a program of many small kernels."""

import concurrent.futures
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp


T = TypeVar("T")

# Each turn that is under way takes memory.
_MOST = 16

_within = threading.local()


def count_threads() -> int:
    """Returns the number of turns that are taken at a time: one for every core, up to sixteen."""
    # Those that this process may use, where the system tells.
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return min(len(usable(0)), _MOST)


def share_out(turn: Callable[[T], Any], numbers: Iterable[T]) -> Iterator[Any]:
    """Maps turns that need nothing of each other, several at a time; results come in order.

    Turns within turns are taken one after the other.
    """
    if getattr(_within, "turn", False) or count_threads() == 1:
        return map(turn, numbers)
    double = jnp.result_type(float) == jnp.float64

    def take(number: T) -> Any:
        # Every thread has a setting of its own.
        with jax.enable_x64(double):
            return jax.block_until_ready(turn(number))

    return _pool().map(take, numbers)


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    begin = functools.partial(setattr, _within, "turn", True)
    return concurrent.futures.ThreadPoolExecutor(count_threads(), "turns", begin)
