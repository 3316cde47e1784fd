"""Surfaces, lit and with shadows, beside Mitsuba 3: seconds, error, seconds at equal error."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from measure import report
from surfaces_scene import ours, SIZE

import scenegraph as sg


SAMPLES = (1, 4, 16, 64, 256)
GRADIENT_SAMPLES = (1, 4, 16)
FOLDER = pathlib.Path(__file__).parent


def main(
    runs: int = 10,
    reference: int = 2048,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/surfaces.json"),
) -> None:
    """Times ours and Mitsuba's in turn; with `--reference`, the samples of the reference."""
    figures = {"size": SIZE, "plain_checkerboard": _plain(20 * runs), **_pictures(runs, reference)}
    report(out, {**figures, "first_picture_seconds": _first_pictures("mitsuba_rmse" in figures)})


def _pictures(runs: int, reference: int) -> dict[str, Any]:
    scene, camera = ours()
    draw, gradient, compiling = _compiled(scene, camera)
    calls = {
        "forward": _timed(lambda: draw(scene, camera)),
        "gradient": _timed(lambda: gradient(scene, camera)),
    }
    figures: dict[str, Any] = {"compile_seconds": compiling}
    other = _start_mitsuba()
    if other is None:
        return figures | {"milliseconds": _in_turn(calls, runs)}
    for name, counts in (("forward", SAMPLES), ("gradient", GRADIENT_SAMPLES)):
        calls |= {f"mitsuba_{name}_{n}": _asked(other, name, n) for n in counts}
    figures |= {"mitsuba": other.version, "milliseconds": _in_turn(calls, runs)}
    figures |= _errors(np.asarray(draw(scene, camera)), other, reference)
    return figures | {"equal_error": _equal_error(figures)}


def _compiled(scene: sg.Scene, camera: sg.PerspectiveCamera) -> tuple[Callable, Callable, dict]:
    """The picture, and the gradient of all leaves of scene and camera; seconds to get them."""

    def draw(scene: sg.Scene, camera: sg.PerspectiveCamera) -> jax.Array:
        return sg.render(scene, camera).rgb

    def brightness(both: tuple) -> jax.Array:
        return jnp.mean(draw(*both) ** 2)

    def gradient(scene: sg.Scene, camera: sg.PerspectiveCamera) -> Any:
        return eqx.filter_value_and_grad(brightness)((scene, camera))

    functions, seconds = [], {}
    for function in (draw, gradient):
        begin = time.perf_counter()
        functions.append(eqx.filter_jit(function).lower(scene, camera).compile())
        seconds[function.__name__] = time.perf_counter() - begin
    return functions[0], functions[1], seconds


class _Mitsuba:
    """Mitsuba in a process of its own."""

    def __init__(self):
        command = [sys.executable, str(FOLDER / "surfaces_mitsuba.py")]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.version = self._answer()

    def ask(self, *request: Any) -> Any:
        """One request and its answer."""
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1].strip()[-500:])
        return json.loads(line)


def _start_mitsuba() -> _Mitsuba | None:
    """Mitsuba, or `None` and a word on why it is not there."""
    try:
        other = _Mitsuba()
        other.ask("forward", 1)
    except RuntimeError as error:
        place = os.environ.get("DRJIT_LIBLLVM_PATH", "not set")
        print(f"Mitsuba is not there, so nothing beside it (DRJIT_LIBLLVM_PATH: {place}): {error}")
        return None
    return other


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    def seconds() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(call())
        return time.perf_counter() - begin

    return seconds


def _asked(other: _Mitsuba, *request: Any) -> Callable[[], float]:
    return lambda: other.ask(*request)


def _in_turn(calls: dict[str, Callable[[], float]], runs: int) -> dict[str, dict[str, float]]:
    """Best and median of calls that take turns, so that the machine's guests disturb all alike.

    At its turn each is called twice, and the second time counts: what another process has done to
    the caches is nobody's own time.
    """
    turns = [{name: (call(), call())[1] for name, call in calls.items()} for _ in range(runs)]
    seconds = {name: [turn[name] for turn in turns] for name in calls}
    return {
        name: {"best": 1e3 * min(times), "median": 1e3 * float(np.median(times))}
        for name, times in seconds.items()
    }


def _errors(picture: np.ndarray, other: _Mitsuba, reference: int) -> dict[str, Any]:
    """Root mean square errors against Mitsuba's own picture of many samples."""
    truth, again = (_drawn(other, reference, seed) for seed in (10_000, 20_000))
    return {
        "rmse": _rmse(picture, truth),
        "mitsuba_rmse": {n: _rmse(_drawn(other, n, 100 * n), truth) for n in SAMPLES},
        "rmse_of_a_second_reference": _rmse(again, truth),
        "rmse_against_both": _rmse(picture, (truth + again) / 2),
    }


def _drawn(other: _Mitsuba, samples: int, seed: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        return np.load(other.ask("picture", f"{folder}/picture.npy", samples, seed))


def _rmse(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


def _equal_error(figures: dict[str, Any]) -> dict[str, Any]:
    """Mitsuba's time where its error is ours, along a line through logarithms.

    Where even its largest number of samples has a larger error, the time of that number stands as
    what it takes at least.
    """
    errors, times = figures["mitsuba_rmse"], figures["milliseconds"]
    seen = np.array([[n, e, times[f"mitsuba_forward_{n}"]["median"]] for n, e in errors.items()])
    samples, error, milliseconds = np.log(seen[np.argsort(seen[:, 1])]).T
    wanted = np.log(figures["rmse"])
    takes = float(np.exp(np.interp(wanted, error, milliseconds)))
    return {
        "mitsuba_samples": float(np.exp(np.interp(wanted, error, samples))),
        "at_least": bool(wanted < error[0]),
        "mitsuba_milliseconds": takes,
        "times_faster": takes / times["forward"]["median"],
    }


def _plain(runs: int) -> dict[str, Any]:
    """A checkerboard straight over a picture of 100 x 100 pixels, without light."""
    board = sg.shaders.Checker(10.0, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    scene = sg.Scene(sg.Group(board=sg.Surface(sg.shapes.Plane(), board)))
    camera = sg.OrthographicCamera.look_at(
        [50.0, 50.0, 1.0], [50.0, 50.0, 0.0], [0.0, 1.0, 0.0], 100.0, 100, 100
    )
    draw = jax.jit(lambda scene, camera: sg.render(scene, camera).rgb)

    def rendered() -> jax.Array:
        return sg.render(scene, camera).rgb

    calls = {
        "compiled": _timed(lambda: draw(scene, camera)),
        "render": _timed(rendered),
        "numpy": _timed(lambda: _numpy_board(1)),
    }
    # Apart, because it leaves nothing of the others in the cache.
    many = {"numpy_16_samples": _timed(lambda: _numpy_board(4))}
    same = np.abs(np.asarray(draw(scene, camera))[::-1] - _numpy_board(1)).max()
    return {**_in_turn(calls, runs), **_in_turn(many, runs), "largest_difference": float(same)}


def _numpy_board(side: int) -> np.ndarray:
    """The same picture, with `side * side` samples a pixel."""
    where = (np.arange(100 * side, dtype=np.float32) + 0.5) / side
    x, y = np.meshgrid(where, where)
    white = (np.floor(x / 10) + np.floor(y / 10)) % 2 == 0
    rgb = np.where(white[..., None], np.ones(3, np.float32), np.zeros(3, np.float32))
    return rgb if side == 1 else rgb.reshape(100, side, 100, side, 3).mean((1, 3))


def _first_pictures(with_mitsuba: bool, runs: int = 3) -> dict[str, float]:
    """Seconds from nothing to the first picture, in fresh processes."""
    begin = f"import time; a = time.perf_counter(); import sys; sys.path.insert(0, '{FOLDER}')\n"
    end = "\nprint(time.perf_counter() - a)"
    mine = (
        "import surfaces_scene as s, scenegraph as g\ng.render(*s.ours()).rgb.block_until_ready()"
    )
    other = "from surfaces_mitsuba import Mitsuba\nMitsuba().forward(1)"
    scripts = {"ours": mine} | ({"mitsuba": other} if with_mitsuba else {})
    return {
        name: float(np.median([_seconds(begin + script + end) for _ in range(runs)]))
        for name, script in scripts.items()
    }


def _seconds(script: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    return float(done.stdout.splitlines()[-1])
