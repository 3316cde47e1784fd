"""The library's own checkpoints beside Orbax's, if that is installed."""

import importlib.metadata
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from measure import report

from scenegraph.fitting import start_state
from scenegraph.io import FileError
from scenegraph.runs import load_state, save_state
from scenegraph.settings import make_scene, preset


ORBAX = "orbax.checkpoint.experimental.v1"


def main(
    flips: int = 40, out: pathlib.Path = pathlib.Path("docs/benchmarks/checkpoints.json")
) -> None:
    """Time, size and files of the fast preset's state, and what a flipped bit does."""
    with tempfile.TemporaryDirectory() as folder:
        figures = {"scenegraph": _figures(Own(), pathlib.Path(folder) / "own", flips)}
        if importlib.util.find_spec("orbax"):
            figures["orbax"] = _figures(Orbax(), pathlib.Path(folder) / "orbax", flips)
    report(out, figures)


class Own:
    """`save_state` and `load_state`."""

    modules, packages = "scenegraph.io", ()

    def save(self, path: pathlib.Path, state: Any) -> None:
        save_state(path, state)

    def load(self, path: pathlib.Path, like: Any) -> Any:
        return _by_name(load_state(path, like))


class Orbax:
    """Its version 1, with a dictionary of arrays."""

    modules = ORBAX
    packages = (
        "orbax-checkpoint",
        "tensorstore",
        "etils",
        "fsspec",
        "aiofiles",
        "msgpack",
        "simplejson",
        "uvloop",
        "zipp",
        "psutil",
        "prometheus-client",
    )

    def save(self, path: pathlib.Path, state: Any) -> None:
        importlib.import_module(ORBAX).save(path, _by_name(state))

    def load(self, path: pathlib.Path, like: Any) -> Any:
        return importlib.import_module(ORBAX).load(path, _by_name(like))


def _by_name(state: Any) -> dict[str, jax.Array]:
    named = jax.tree_util.tree_flatten_with_path(eqx.filter(state, eqx.is_inexact_array))[0]
    return {jax.tree_util.keystr(keys): leaf for keys, leaf in named}


def _state() -> Any:
    config, key, box = preset("fast"), jax.random.key(0), (-np.ones(3), np.ones(3))
    scene = make_scene(config, box, np.zeros((config.method.occupancy,) * 3, bool), key=key)
    state = start_state(scene, config.training.make_optimizer(), key=key)
    rng = np.random.default_rng(0)

    def fill(leaf: Any) -> Any:
        noise = eqx.is_inexact_array(leaf)
        return jax.numpy.asarray(rng.normal(size=leaf.shape), leaf.dtype) if noise else leaf

    return jax.tree.map(fill, state)


def _figures(kind: Any, folder: pathlib.Path, flips: int) -> dict[str, Any]:
    state = _state()
    folder.mkdir()
    saves = _times(lambda n: kind.save(folder / str(n), state))
    loads = _times(lambda n: jax.block_until_ready(kind.load(folder / str(n), state)))
    files = _files(folder / "0")
    return {
        "save_ms": saves,
        "load_ms": loads,
        "files": len(files),
        "mib": round(sum(path.stat().st_size for path in files) / 2**20, 2),
        "import_ms": _import_ms(kind.modules),
        "dependencies_mib": round(sum(map(_size, kind.packages)) / 2**20, 1),
        "flipped_bits": _flipped(kind, folder / "0", state, flips),
    }


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    return [path] if path.is_file() else [x for x in path.rglob("*") if x.is_file()]


def _times(call: Callable[[int], Any], runs: int = 9) -> dict[str, float]:
    seconds = []
    for number in range(runs):
        begin = time.perf_counter()
        call(number)
        seconds.append(1e3 * (time.perf_counter() - begin))
    return {"first": round(seconds[0], 1), "median": round(float(np.median(seconds)), 1)}


def _import_ms(module: str) -> float:
    """Beside what the library imports anyway."""
    script = f"import scenegraph, time; b = time.time(); import {module}; print(time.time() - b)"
    seconds = [
        float(
            subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
        )
        for _ in range(3)
    ]
    return round(1e3 * min(seconds), 1)


def _size(package: str) -> int:
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return 0
    return sum(size for file in files if (size := _size_of(pathlib.Path(str(file.locate())))))


def _size_of(path: pathlib.Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _flipped(kind: Any, path: pathlib.Path, state: Any, flips: int) -> dict[str, int]:
    """What a load says when one bit of the largest file is another."""
    rng, seen, good = np.random.default_rng(0), Counter(), _by_name(state)
    largest = max(_files(path), key=lambda file: file.stat().st_size)
    data = largest.read_bytes()
    for _ in range(flips):
        bad, at = bytearray(data), int(rng.integers(len(data)))
        bad[at] ^= 1 << int(rng.integers(8))
        largest.write_bytes(bad)
        try:
            found = kind.load(path, state)
        except FileError:
            seen["refused: damaged"] += 1
        except Exception:  # noqa: BLE001 - whatever it raises
            seen["another error"] += 1
        else:
            same = all(np.array_equal(found[name], good[name]) for name in good)
            seen["same numbers" if same else "OTHER NUMBERS"] += 1
    largest.write_bytes(data)
    shutil.rmtree(path, ignore_errors=True)
    return dict(seen)
