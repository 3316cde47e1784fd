"""Calibration by many seeds: from how many starts it succeeds, whether its error bars are right.

The board, the cameras and the stages are those of `examples/calibrate_camera.py`.
"""

import json
import pathlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import optax
from measure import machine

import scenegraph as sg


sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))

from calibrate_camera import calibrate, CAMERAS, make, perturbed, STAGES, WANTED  # noqa: E402


SIGMA = 0.01
# What counts as found: focal lengths in parts of the true one, the point in pixels, and k1.
WITHIN = {"focal": 1e-3, "principal_point": 0.1, "k1": 2e-3}
ALL_PIXELS = len(CAMERAS) * 160 * 120


def main(
    starts: int = 100,
    noises: int = 400,
    fisher: int = 200,
    adam: int = 3,
    first: int = 0,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/calibration.json"),
) -> None:
    """Solves from many perturbed starts, and with many noises; the same with Adam.

    A part with 0 seeds is left as the file has it. `first` is the first seed of the starts, which
    are added to those that the file has.
    """
    truth = make()
    clean = [sg.render(truth, path) for path in CAMERAS]
    parts = {
        "starts": _starts(truth, clean, range(first, first + starts), _known(out, first)),
        "intervals": _intervals(truth, clean, noises, fisher),
        "adam": _adam(truth, clean, adam),
    }
    for name, figures in parts.items():
        for some in figures:
            _write(out, {name: {**some, "machine": machine()}})
    print(out.read_text())


def _write(out: pathlib.Path, figures: dict[str, Any]) -> None:
    known = json.loads(out.read_text()) if out.exists() else {}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**known, **figures}, indent=2) + "\n")


def _known(out: pathlib.Path, first: int) -> list[dict[str, Any]]:
    """Returns the runs that a file has, of seeds before the first."""
    known = json.loads(out.read_text()) if first and out.exists() else {}
    return [run for run in known.get("starts", {}).get("runs", []) if run["seed"] < first]


def _views(clean: Sequence[sg.Image], seed: int) -> sg.Views:
    """Adds noise to the pictures."""
    rng = np.random.default_rng([7, seed])
    noisy = [np.asarray(x.rgb) + SIGMA * rng.normal(size=x.rgb.shape) for x in clean]
    return sg.views(CAMERAS, [x.astype(np.float32) for x in noisy], space=clean[0].space)


def _errors(scene: sg.Scene, truth: sg.Scene) -> dict[str, float]:
    found, true = (s.root.children["cam0"] for s in (scene, truth))
    return {
        "focal": float(np.max(np.abs(found.focal / true.focal - 1))),
        "principal_point": float(np.linalg.norm(found.principal_point - true.principal_point)),
        "k1": float(abs(found.k1 - true.k1)),
    }


def _is_found(errors: dict[str, float]) -> bool:
    return all(errors[name] < bound for name, bound in WITHIN.items())


# --- From how many starts


def _starts(
    truth: sg.Scene, clean: Sequence[sg.Image], seeds: range, known: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yields figures of more and more seeds."""
    runs = list(known)
    for seed in seeds:
        guess, views = perturbed(truth, seed), _views(clean, seed)
        wall, cpu = time.perf_counter(), time.process_time()
        stages = calibrate(guess, views)
        errors = _errors(stages[-1].scene, truth)
        runs.append(
            {
                "seed": seed,
                "found": _is_found(errors),
                "errors": errors,
                "iterations": sum(stage.iterations for stage in stages),
                # Of all pixels of all pictures; a forward derivative counts as one.
                "renders": _all_renders(stages),
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
            }
        )
        print(runs[-1], flush=True)
        yield _starts_figures(runs)


def _starts_figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    # The first run compiles.
    later = runs[1:] or runs
    return {
        "seeds": len(runs),
        "failures": [run["seed"] for run in runs if not run["found"]],
        "most_iterations": max(run["iterations"] for run in runs),
        "median": {
            name: float(np.median([run[name] for run in later]))
            for name in ("iterations", "renders", "seconds", "cpu_seconds")
        },
        "runs": runs,
    }


def _all_renders(stages: Sequence[sg.SolveResult]) -> float:
    pairs = zip(stages, STAGES, strict=True)
    return sum(stage.renders * pixels / ALL_PIXELS for stage, (_, _, pixels) in pairs)


# --- Whether error bars are right


# Fewer pixels than there are, drawn once for all seeds: intervals are as right for these.
PIXELS = 4000


def _intervals(
    truth: sg.Scene, clean: Sequence[sg.Image], count: int, fisher: int
) -> Iterator[dict[str, Any]]:
    """Solves from the true place on, with other noise each time."""
    errors, predicted, known = [], [], None
    for seed in range(count):
        views = _views(clean, 10_000 + seed)
        known = _known_errors(truth, clean) if known is None else known
        result = sg.solve(truth, views, trainable=WANTED, steps=8, pixels=PIXELS)
        assert result.uncertainty is not None
        errors.append(_vector(result.scene) - _vector(truth))
        predicted.append(_flat(result.uncertainty.standard_errors))
        if (seed + 1) % 20 == 0 or seed + 1 == count:
            print(seed + 1, result.reason, flush=True)
            yield _intervals_figures(np.asarray(errors), np.asarray(predicted), known, fisher)


def _intervals_figures(
    errors: np.ndarray, predicted: np.ndarray, known: np.ndarray, fisher: int
) -> dict[str, Any]:
    # Normal quantiles: there are thousands of degrees of freedom.
    inside = np.abs(errors) < 1.959964 * predicted
    ratios = np.sqrt(np.mean(errors[:fisher] ** 2, axis=0)) / known
    return {
        "seeds": len(errors),
        "pixels": PIXELS,
        "inside_95_percent": float(np.mean(inside)),
        "by_parameter": [float(np.min(inside.mean(0))), float(np.max(inside.mean(0)))],
        "fisher_seeds": min(fisher, len(errors)),
        "empirical_over_predicted": {
            "least": float(ratios.min()),
            "median": float(np.median(ratios)),
            "most": float(ratios.max()),
        },
        "parameters": int(errors.shape[1]),
    }


def _known_errors(truth: sg.Scene, clean: Sequence[sg.Image]) -> np.ndarray:
    """Predicts standard errors from the scene and the noise alone, before any picture is taken."""
    views = sg.views(CAMERAS, [x.rgb for x in clean], space=clean[0].space)
    result = sg.solve(truth, views, trainable=WANTED, steps=0, sigma=SIGMA, pixels=PIXELS)
    assert result.uncertainty is not None
    return _flat(result.uncertainty.standard_errors)


def _flat(by_path: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(by_path[path]) for path in sorted(by_path)])


def _vector(scene: sg.Scene) -> np.ndarray:
    lens = scene.root.children["cam0"]
    values = {f"{path}.pose.delta": scene.root.children[path].pose.delta for path in CAMERAS}
    values |= {f"cam0.{name}": getattr(lens, name) for name in WITHIN}
    return _flat({path: np.asarray(value, float) for path, value in values.items()})


# --- Adam

RATES = {"cam*.pose.delta": 1e-3, "cam0.focal": 0.2, "cam0.principal_point": 0.2, "cam0.k1": 2e-3}
RAYS = 4096


def _adam(truth: sg.Scene, clean: Sequence[sg.Image], seeds: int) -> Iterator[dict[str, Any]]:
    """Fits with Adam, twice as long each time, until everything is found."""
    runs = []
    for seed in range(seeds):
        for steps in (500, 1000, 2000, 4000, 8000):
            errors = _errors(_fit(truth, clean, seed, steps), truth)
            # A step is a rendering and a reverse derivative, which counts as one more.
            renders = 2 * steps * RAYS / ALL_PIXELS
            runs.append({"seed": seed, "steps": steps, "renders": renders, "errors": errors})
            runs[-1]["found"] = _is_found(errors)
            print(runs[-1], flush=True)
            yield {"seeds": seed + 1, "rays_per_step": RAYS, "rates": RATES, "runs": runs}
            if runs[-1]["found"]:
                break


def _fit(truth: sg.Scene, clean: Sequence[sg.Image], seed: int, steps: int) -> sg.Scene:
    decay = optax.cosine_decay_schedule(1.0, steps)
    rates = {path: optax.adam(lambda n, r=rate: r * decay(n)) for path, rate in RATES.items()}
    optimizer = sg.optimizers.by_path(rates)
    views = _views(clean, seed)
    batches = sg.data.RayBatches(views, RAYS, annealing=sg.data.Annealing(24.0, steps // 2))
    fitted = sg.fit(
        perturbed(truth, seed),
        batches,
        trainable=WANTED,
        optimizer=optimizer,
        steps=steps,
        key=jax.random.key(seed),
    )
    return fitted.scene


if __name__ == "__main__":
    main()
