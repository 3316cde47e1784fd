"""Files that are cut or altered: a clear error, or the very same numbers; never anything else."""

import contextlib
import pathlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import scenegraph as sg
from scenegraph.fitting import start_state
from scenegraph.io import FileError
from scenegraph.runs import load_state, save_state
from support.toy_fits import cloud


Check = Callable[[pathlib.Path], str]


def bits(tree: Any) -> list[tuple]:
    """All arrays of a tree, to the last bit."""
    leaves = [x for x in jax.tree.leaves(tree) if isinstance(x, jax.Array)]
    raw = [
        jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        for x in leaves
    ]
    return [(str(x.dtype), x.shape, np.asarray(x).tobytes()) for x in raw]


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raises what nobody catches when something hangs."""

    def hang(number: int, frame: Any) -> None:
        raise SystemExit(f"it took longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(path: pathlib.Path, load: Callable[[pathlib.Path], Any], good: list) -> str:
    """What became of a file: `refused`, `same`, or something that must not be."""
    with no_longer_than(20):
        try:
            found = bits(load(path))
        except FileError as error:
            return "refused" if str(path) in str(error) else f"does not name the file: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            return f"{type(error).__name__}: {error}"
    return "same" if found == good else "OTHER NUMBERS"


def altered(data: bytes, rng: np.random.Generator, within: slice = slice(None)) -> bytes:
    """One of many kinds of damage, somewhere in a part of the bytes."""
    first, last, _ = within.indices(len(data))
    at = int(rng.integers(first, last))
    size = int(rng.integers(1, 65))
    noise = rng.bytes(size)
    other = int(rng.integers(first, last))
    kinds = (
        lambda: data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :],
        lambda: data[:at] + noise + data[at + size :],
        lambda: data[:at] + bytes(size) + data[at + size :],
        lambda: data[:at] + data[at + size :],
        lambda: data[:at] + noise + data[at:],
        lambda: data[:at] + data[other : other + size] + data[at + size :],
        lambda: data[:at] + data[other : other + size] + data[at:],
    )
    return kinds[int(rng.integers(len(kinds)))]()


def subjects() -> dict[str, tuple[Callable, Callable, list]]:
    """By name: how a file is written, how it is read, and what it holds."""
    scene = sg.freeze(cloud(), "background")
    state = start_state(scene, optax.adam(0.1), steps=9, key=jax.random.key(3))
    other = sg.freeze(cloud((0.1, 0.2, 0.3)), "background")
    like = start_state(other, optax.adam(0.1), key=jax.random.key(0))
    return {
        "scene": (lambda path: sg.save(scene, path), sg.load, bits(scene)),
        "checkpoint": (
            lambda path: save_state(path, state, preset="tiny"),
            lambda path: load_state(path, like),
            bits(state),
        ),
    }


def cut_and_altered(name: str, alterations: int, stride: int = 1) -> dict[str, Any]:
    """Every so many-th shorter file, and so many altered ones, half of them in the header."""
    write, load, good = subjects()[name]
    seen: dict[str, Counter] = {"cut": Counter(), "altered": Counter()}
    rng, begin = np.random.default_rng(0), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "file.sg"
        write(path)
        data = path.read_bytes()
        assert outcome(path, load, good) == "same"
        header = slice(0, data.find(b".npy"))
        for length in range(0, len(data), stride):
            path.write_bytes(data[:length])
            seen["cut"][outcome(path, load, good)] += 1
        for number in range(alterations):
            bad = altered(data, rng, header if number % 2 else slice(None))
            if bad != data:
                path.write_bytes(bad)
                seen["altered"][outcome(path, load, good)] += 1
    assert set(seen["cut"]) == {"refused"}, seen
    assert set(seen["altered"]) <= {"refused", "same"}, seen
    counts = {kind: dict(found) for kind, found in seen.items()}
    return {"bytes": len(data), **counts, "seconds": round(time.perf_counter() - begin, 1)}


def main(alterations: int = 1000) -> dict[str, Any]:
    """Every truncation, and random damage, of a scene and of a checkpoint."""
    return {name: cut_and_altered(name, alterations) for name in subjects()}
