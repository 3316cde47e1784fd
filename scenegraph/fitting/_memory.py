"""Free memory, and the memory that a step needs, compared before the first one is taken."""

import contextlib
import math
import os
import pathlib
import resource
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.errors import JaxRuntimeError

from .._typing import PyTree
from ..pixels import free_on_host


_MIB = 2**20
# Address space that Python, JAX and the compiler take beside their arrays, as measured.
_START, _COMPILER = 1536 * _MIB, 512 * _MIB
# Factors by which blocks of rays are made smaller if there is little memory.
_SMALLER = (4, 32)


class TooLarge(MemoryError):
    """A fit that does not fit into memory; the message says what to lower."""


class Needs(NamedTuple):
    """Bytes that a step needs: for its results, for its batch, and while it runs."""

    state: int
    batch: int
    temporary: int

    def total(self) -> int:
        """Returns all, with a second step under way: 2 (state + batch) + temporary."""
        return self.least() + self.temporary

    def least(self) -> int:
        """Returns the part that smaller blocks do not change: 2 (state + batch)."""
        return 2 * (self.state + self.batch)


def needs_of(compiled: Any, batch: PyTree, sharers: int = 1) -> Needs | None:
    """Returns the needs of a compiled step, on devices that share one memory, if known."""
    try:
        analysis = compiled.memory_analysis()
    except (AttributeError, NotImplementedError, JaxRuntimeError):
        return None
    if analysis is None:
        return None

    def on_one_device(leaf: Any) -> int:
        shape = leaf.shape if leaf.sharding is None else leaf.sharding.shard_shape(leaf.shape)
        return math.prod(shape) * leaf.dtype.itemsize

    size = sum(map(on_one_device, jax.tree.leaves(batch)))
    needs = analysis.output_size_in_bytes, size, analysis.temp_size_in_bytes
    return Needs(*(sharers * needed for needed in needs))


def fit_into_memory(
    step: Any, state: Any, *, least: Callable[[float], float] = lambda size: size
) -> Any:
    """Returns the step, or one in smaller blocks, for which there is memory; raises `TooLarge`.

    `step.needs(state)` compiles it, and `step.in_smaller_blocks(times)` returns a step with fewer
    rays at a time; both may be `None`. `least` finds the smallest number of all processes.
    """
    check_address_space(_COMPILER)
    needs, (free, where) = step.needs(state), free_memory()
    free = int(least(free))
    for times in _SMALLER:
        if needs is None or needs.total() <= free:
            return step
        smaller = step.in_smaller_blocks(times)
        if smaller is None or needs.least() > free:
            break
        less = smaller.needs(state)
        if less is not None and less.total() <= free:
            warnings.warn(
                f"a step needs {_shown(needs.total())}, and {where} leaves {_shown(free)}: rays "
                f"are worked on in blocks that are {times} times smaller, which is slower and "
                "rounds differently.",
                stacklevel=3,
            )
            return smaller
    if needs is not None and needs.total() > free:
        raise TooLarge(_advice(needs, free, where))
    return step


def check_address_space(needed: int = _START) -> None:
    """Raises `TooLarge` if `ulimit -v` leaves JAX and its compiler too little: they would crash."""
    left = _address_space()
    if left < needed:
        raise TooLarge(
            f"`ulimit -v` leaves {_shown(left)} of address space, and JAX with its compiler needs "
            f"about {_shown(needed)} beside all arrays. Raise the limit by "
            f"{_shown(needed - left)} or more, or lift it (`ulimit -v unlimited`)."
        )


def free_memory() -> tuple[int, str]:
    """Returns the bytes that are free where steps run, and the name of what limits them."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0), "the device"
    return min(
        (_address_space(), "`ulimit -v`"),
        (int(min(free_on_host(), _UNLIMITED)), "the system"),
        (_group_memory(), "the container's limit (cgroup)"),
    )


def _advice(needs: Needs, free: int, where: str) -> str:
    levers = [
        ("twice its batch", 2 * needs.batch, "--batch-size"),
        (
            "twice the scene with the optimiser's moments",
            2 * needs.state,
            "--width, --depth, or a grid's --capacity, --features and --resolutions",
        ),
        ("temporary arrays", needs.temporary, "--samples, --candidates, --width"),
    ]
    parts = ", ".join(f"{_shown(size)} for {name}" for name, size, _ in levers)
    flags = max(levers, key=lambda lever: lever[1])[2]
    return (
        f"a step needs {_shown(needs.total())} ({parts}; twice because the next step is prepared "
        f"meanwhile), but {where} leaves only {_shown(free)}. Lower {flags}."
    )


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / _MIB:.1f} MiB"


_UNLIMITED = 2**62


def _address_space() -> int:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _number(pathlib.Path("/proc/self/statm"), 0) or 0
    return _UNLIMITED if limit < 0 else max(0, limit - used * os.sysconf("SC_PAGE_SIZE"))


def _group_memory() -> int:
    """Returns what the limits of this process's control groups leave, of either version."""
    left = _UNLIMITED
    for folder in _groups():
        most = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        if most is not None and used is not None:
            left = min(left, max(0, most - used + _cached(folder)))
    return left


def _groups() -> list[pathlib.Path]:
    """Returns the folders of this process's groups, and of those that these are in."""
    found, top = [], pathlib.Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            if kinds in ("", "memory"):
                inner = pathlib.PurePosixPath(name.lstrip("/"))
                found += [top / kinds / folder for folder in (inner, *inner.parents)]
    return list(dict.fromkeys(found))


def _cached(folder: pathlib.Path) -> int:
    """Returns the bytes of files in memory, which are given up when there is need."""
    with contextlib.suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text().splitlines()
        pairs = dict(line.split() for line in lines)
        return int(pairs.get("total_inactive_file", pairs.get("inactive_file", 0)))
    return 0


def _number(path: pathlib.Path, place: int = 0) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(path.read_text().split()[place])
    return None
