"""How much memory there is, and how much a step needs: asked before the first one is taken."""

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


_MIB = 2**20
# Address space that Python, JAX and the compiler take beside their arrays, as measured.
_START, _COMPILER = 1536 * _MIB, 512 * _MIB
# In blocks that are so many times smaller, rays are worked on if there is little memory.
_SMALLER = (4, 32)


class TooLarge(MemoryError):
    """A fit that does not fit into memory; the message says what to lower."""


class Needs(NamedTuple):
    """What one step takes, in bytes.

    **Arguments:**

    - `state`: the scene, the optimiser's moments, and what else a step returns.
    - `batch`: the rays and their colours.
    - `temporary`: what is set aside while it runs.
    """

    state: int
    batch: int
    temporary: int

    def total(self) -> int:
        """With a second step under way, whose state and batch are made meanwhile.

        **Returns:**

        Bytes, beside what is there already.
        """
        return self.least() + self.temporary

    def least(self) -> int:
        """What smaller blocks do not change.

        **Returns:**

        Bytes.
        """
        return 2 * (self.state + self.batch)


def needs_of(compiled: Any, batch: PyTree, sharers: int = 1) -> Needs | None:
    """What a compiled step takes, as the compiler says.

    **Arguments:**

    - `compiled`: a step, compiled ahead of time.
    - `batch`: an argument of its, or the shapes of one.
    - `sharers`: how many devices, each of which takes as much, share one memory.

    **Returns:**

    `None` where the compiler does not tell.
    """
    try:
        analysis = compiled.memory_analysis()
    except (AttributeError, NotImplementedError, JaxRuntimeError):
        return None
    if analysis is None:
        return None
    size = sum(map(_on_one_device, jax.tree.leaves(batch)))
    needs = analysis.output_size_in_bytes, size, analysis.temp_size_in_bytes
    return Needs(*(sharers * needed for needed in needs))


def _on_one_device(leaf: Any) -> int:
    shape = leaf.shape if leaf.sharding is None else leaf.sharding.shard_shape(leaf.shape)
    return math.prod(shape) * leaf.dtype.itemsize


def fit_into_memory(
    step: Any, state: Any, *, least: Callable[[float], float] = lambda size: size
) -> Any:
    """A step that there is memory for, compiled.

    **Arguments:**

    - `step`: of a fit. Its method `needs(state)` compiles it and returns `Needs`, or `None` where
      the compiler does not tell; `in_smaller_blocks(times)` returns the same step with so many
      times fewer rays worked on at a time, or `None` where that is not for us to choose.
    - `state`: to begin with.
    - `least`: finds the least of what all processes of the fit have, so that they decide alike.
      Keyword only argument.

    **Returns:**

    The step; if there is too little memory, one in smaller blocks, with a warning.

    **Errors:**

    `TooLarge` if that does not help either.
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
    """Makes sure that `ulimit -v` leaves enough for JAX and its compiler, which else would crash.

    **Arguments:**

    - `needed`: bytes; by default what a process needs that has only just begun.

    **Errors:**

    `TooLarge`, which says how much more is needed.
    """
    left = _address_space()
    if left < needed:
        raise TooLarge(
            f"`ulimit -v` leaves {_shown(left)} of address space, and JAX with its compiler needs "
            f"about {_shown(needed)} beside all arrays. Raise the limit by "
            f"{_shown(needed - left)} or more, or lift it (`ulimit -v unlimited`)."
        )


def free_memory() -> tuple[int, str]:
    """What can still be set aside on the device that steps run on.

    **Returns:**

    Bytes, and whose limit that is.
    """
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0), "the device"
    return min(
        (_address_space(), "`ulimit -v`"),
        (_of_the_system(), "the system"),
        (_of_the_group(), "the container's limit (cgroup)"),
    )


def _advice(needs: Needs, free: int, where: str) -> str:
    levers = [
        ("twice its batch", 2 * needs.batch, "--batch-size"),
        (
            "twice the scene with the optimiser's moments",
            2 * needs.state,
            "--width, --depth, or a grid's --capacity, --features and --resolutions",
        ),
        ("what it sets aside while it runs", needs.temporary, "--samples, --candidates, --width"),
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


def _of_the_system() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return _UNLIMITED


def _of_the_group() -> int:
    """What the limits of this process's control groups leave, of either version."""
    left = _UNLIMITED
    for folder in _groups():
        most = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        if most is not None and used is not None:
            left = min(left, max(0, most - used + _cached(folder)))
    return left


def _groups() -> list[pathlib.Path]:
    """The folders of this process's groups, and of those that these are in."""
    found, top = [], pathlib.Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            if kinds in ("", "memory"):
                inner = pathlib.PurePosixPath(name.lstrip("/"))
                found += [top / kinds / folder for folder in (inner, *inner.parents)]
    return list(dict.fromkeys(found))


def _cached(folder: pathlib.Path) -> int:
    """Pages of files, which are given up when there is need."""
    with contextlib.suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text().splitlines()
        pairs = dict(line.split() for line in lines)
        return int(pairs.get("total_inactive_file", pairs.get("inactive_file", 0)))
    return 0


def _number(path: pathlib.Path, place: int = 0) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(path.read_text().split()[place])
    return None
