"""Gradients against finite differences, leaf by leaf."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, PyTree, Scalar
from ..cameras import AbstractCamera
from ..flat import flatten
from ..integrators import AbstractIntegrator, choose_integrator
from ..rays import Ray
from ..rendering import render_rays
from ..rows import lower_by_vmap
from ..scene import find_camera, named_leaves, Scene, select, trainable_leaves


# Steps of finite differences, and the rounding error of a value relative to it.
_STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
_NOISE = 1e-9


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """The result of the check of one leaf."""

    path: str
    automatic: float
    difference: float
    error: float
    verdict: str


def check_gradients(
    scene: Scene,
    camera: AbstractCamera | str,
    integrator: AbstractIntegrator | None = None,
    *,
    where: Sequence[str] | Callable | None = None,
    pixels: int = 256,
    tolerance: float = 1e-4,
    progress: Callable[[int, int], object] = lambda done, count: None,
) -> list[GradientCheck]:
    """Compares the gradient of every leaf with finite differences, in double precision.

    The differentiated function is a random mixture of all colours of all levels. Sample positions
    are fixed where the integrator stops gradients. Every leaf is moved along one random direction,
    by steps of several sizes, of which the best counts. At a kink, where the derivatives of both
    sides differ, everything between them is right.

    **Arguments:**

    - `scene`: the scene.
    - `camera`: a camera, or the path of one in the scene, whose leaves are then checked too.
    - `integrator`: the integrator; by default the scene's own.
    - `where`: paths, or a function as for `select`; by default every leaf that is not frozen. This
      and the following are keyword only arguments.
    - `pixels`: number of pixels, spread evenly over the picture.
    - `tolerance`: the largest relative error of a gradient that counts as right.
    - `progress`: a function that is called with the number of leaves done and of all leaves; for
      the first time before anything is compiled, then from a thread of its own.

    **Returns:**

    One record per leaf: its `path`; `automatic` and `difference`, the derivative along a random
    direction of the leaf by automatic differentiation and by the nearest finite difference (at a
    kink, the nearest number between the derivatives of both sides); their `error`, relative to the
    larger one; and a `verdict`, `right`, `zero` (both are), `wrong` or `not finite`.

    **Errors:**

    `ValueError` for a path that matches nothing, or at which there is no camera.
    """
    selected = _selected(scene, where)
    with _in_double():
        double = lambda x: jnp.asarray(np.asarray(x), float) if eqx.is_inexact_array(x) else x
        scene, camera, integrator = jax.tree.map(double, (scene, camera, integrator))
        numbered = _numbered(scene, selected)
        progress(0, len(numbered))
        value_and_grad, fixed_value = _objectives(scene, camera, integrator, pixels)
        leaves, rng = jax.tree.leaves(scene), np.random.default_rng(0)
        moves = [
            _Move(fixed_value, scene, index, rng.normal(size=np.shape(leaves[index])))
            for index, _ in numbered
        ]
        # Compiling the gradient takes longest, and values are computed beside it.
        with ThreadPoolExecutor(1) as beside:
            ahead = beside.submit(_differences, moves, progress)
            value, gradients = value_and_grad(scene)
            differences = ahead.result()
        # Gradients have no leaf where the scene has a function: the two are numbered alike.
        gradients = jax.tree.leaves(eqx.combine(gradients, scene))
        # The derivative along a direction v is g . v.
        automatic = [float(np.sum(gradients[move.index] * move.direction)) for move in moves]
        noise = (abs(float(value)) + 1.0) * _NOISE
        judge = partial(_judge, noise=noise, tolerance=tolerance)
        paths = [path for _, path in numbered]
        return list(map(judge, paths, automatic, moves, differences))


def gradient_table(checks: Sequence[GradientCheck]) -> str:
    """Writes the results of a check as a table.

    **Arguments:**

    - `checks`: the records that `check_gradients` returns.

    **Returns:**

    A text of one line per record, and a heading.
    """
    width = max([len("leaf"), *(len(check.path) for check in checks)])
    lines = [f"{'leaf':{width}}  {'automatic':>12}  {'difference':>12}  {'error':>8}  verdict"]
    for c in checks:
        numbers = f"{c.automatic:12.5g}  {c.difference:12.5g}  {c.error:8.1e}"
        lines.append(f"{c.path:{width}}  {numbers}  {c.verdict}")
    return "\n".join(lines)


def _selected(scene: Scene, where: Sequence[str] | Callable | None) -> PyTree:
    if where is None:
        return trainable_leaves(scene)
    if callable(where):
        return select(scene, where=where)
    return select(scene, *([where] if isinstance(where, str) else where))


def _numbered(scene: Scene, selected: PyTree) -> list[tuple[int, str]]:
    """Returns indices and paths of the selected leaves."""
    marks = jax.tree.leaves(selected)
    paths = [path for path, _, _ in named_leaves(scene)]
    arrays = [index for index, leaf in enumerate(jax.tree.leaves(scene)) if eqx.is_array(leaf)]
    return [(i, path) for i, path in zip(arrays, paths, strict=True) if marks[i]]


def _objectives(
    scene: Scene, camera: AbstractCamera | str, integrator: AbstractIntegrator | None, pixels: int
) -> tuple[Callable, Callable]:
    """Returns value and gradient of a mixture of colours, and its value with fixed samples."""
    integrator = choose_integrator(scene, integrator)
    centres = _spread_pixels(find_camera(scene, camera), pixels)

    def rays(scene: Scene) -> Ray:
        return jax.vmap(find_camera(scene, camera).ray)(centres)

    fix = lambda scene: integrator.with_fixed_samples(flatten(scene), rays(scene))
    fixed = eqx.filter_jit(fix)(scene)

    def mixture(scene: Scene, integrator: AbstractIntegrator) -> Scalar:
        levels = render_rays(scene, rays(scene), integrator)
        colors = jnp.stack([level.rgb for level in levels])
        # A random mixture, in which errors of single colours do not cancel.
        return jnp.sum(jnp.asarray(np.random.default_rng(1).normal(size=colors.shape)) * colors)

    # The gradient is computed once, values eight times a leaf.
    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(mixture))
    value = eqx.filter_jit(mixture)
    return lambda scene: value_and_grad(scene, integrator), lambda scene: value(scene, fixed)


def _spread_pixels(camera: AbstractCamera, pixels: int) -> Array:
    """Returns centres of pixels, evenly over the whole picture."""
    count = camera.width * camera.height
    # Evenly in row-major order, so that rows and columns are both visited.
    numbers = np.unique(np.linspace(0, count - 1, min(pixels, count)).round().astype(int))
    rows, columns = np.divmod(numbers, camera.width)
    return jnp.asarray(np.stack([columns, rows], axis=-1) + 0.5)


@contextlib.contextmanager
def _in_double() -> Iterator[None]:
    """Computes in double precision, by programs that are compiled soon; for one thread."""
    with jax.enable_x64(True), lower_by_vmap():
        yield


@dataclasses.dataclass(frozen=True)
class _Move:
    """A function of the scene as one of a step of one leaf along a direction."""

    value: Callable
    scene: Scene
    index: int
    direction: np.ndarray

    def __call__(self, step: float) -> float:
        leaves, treedef = jax.tree.flatten(self.scene)
        leaves[self.index] = leaves[self.index] + step * self.direction
        return float(self.value(jax.tree.unflatten(treedef, leaves)))


def _differences(
    moves: Sequence[_Move], progress: Callable[[int, int], object]
) -> list[list[float]]:
    """Returns the central differences of all steps, `(f(h) - f(-h)) / (2 h)`, move by move."""
    found = []
    with _in_double():
        for along in moves:
            found.append([(along(step) - along(-step)) / (2 * step) for step in _STEPS])
            progress(len(found), len(moves))
    return found


def _judge(
    path: str,
    automatic: float,
    along: Callable[[float], float],
    central: Sequence[float],
    noise: float,
    tolerance: float,
) -> GradientCheck:
    def differs(x: float) -> bool:
        return not abs(automatic - x) <= tolerance * max(abs(automatic), abs(x)) + noise

    best = min(central, key=lambda x: abs(x - automatic) if np.isfinite(x) else np.inf)
    if differs(best) and np.isfinite(automatic):
        # At a kink, any number between (f(0) - f(-h)) / h and (f(h) - f(0)) / h is right.
        step, here = _STEPS[-1], along(0.0)
        low, high = sorted([(here - along(-step)) / step, (along(step) - here) / step])
        best = min(max(automatic, low), high)
    larger = max(abs(automatic), abs(best))
    error = abs(automatic - best) / larger if larger > 0 else 0.0
    if not np.isfinite(automatic) or not np.isfinite(best):
        return GradientCheck(path, automatic, best, float("nan"), "not finite")
    if larger <= noise:
        return GradientCheck(path, automatic, best, error, "zero")
    return GradientCheck(path, automatic, best, error, "wrong" if differs(best) else "right")
