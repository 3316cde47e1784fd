"""Gradients against finite differences, leaf by leaf."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, PyTree, Scalar
from ..cameras import AbstractCamera
from ..integrators import AbstractIntegrator, choose_integrator
from ..rays import Ray
from ..rendering import render_rays
from ..scene import find_camera, flatten, named_leaves, Scene, select, trainable_leaves


_STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
_NOISE = 1e-9


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """The result of the check of one leaf.

    **Arguments:**

    - `path`: the path of the leaf.
    - `automatic`, `difference`: the derivative along a random direction of the leaf, by automatic
      differentiation and by the nearest finite difference. At a kink, the latter is the nearest
      number between the derivatives of both sides.
    - `error`: the difference of the two, relative to the larger one.
    - `verdict`: `right`, `zero` (both are), `wrong` or `not finite`.
    """

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
      the first time before anything is compiled, which takes longest.

    **Returns:**

    One record per leaf.

    **Errors:**

    `ValueError` for a path that matches nothing, or at which there is no camera.
    """
    selected = _selected(scene, where)
    with jax.enable_x64(True):
        scene, camera, integrator = _double((scene, camera, integrator))
        numbered = _numbered(scene, selected)
        progress(0, len(numbered))
        value_and_grad, fixed_value = _objectives(scene, camera, integrator, pixels)
        value, gradients = value_and_grad(scene)
        noise, gradients = (abs(float(value)) + 1.0) * _NOISE, jax.tree.leaves(gradients)
        checks, rng = [], np.random.default_rng(0)
        for index, path in numbered:
            line = _Line.through(fixed_value, scene, index, rng)
            automatic = float(np.sum(np.asarray(gradients[index]) * line.direction))
            checks.append(_judge(path, automatic, line, noise, tolerance))
            progress(len(checks), len(numbered))
    return checks


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


def _double(tree: PyTree) -> PyTree:
    def convert(leaf: Any) -> Any:
        return jnp.asarray(np.asarray(leaf), float) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(convert, tree)


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

    fixed = integrator.with_fixed_samples(flatten(scene), rays(scene))

    def mixture(scene: Scene, integrator: AbstractIntegrator) -> Scalar:
        levels = render_rays(scene, rays(scene), integrator)
        colors = jnp.stack([level.rgb for level in levels])
        return jnp.sum(jnp.asarray(np.random.default_rng(1).normal(size=colors.shape)) * colors)

    value_and_grad = eqx.filter_jit(eqx.filter_value_and_grad(mixture))
    value = eqx.filter_jit(mixture)
    return lambda scene: value_and_grad(scene, integrator), lambda scene: value(scene, fixed)


def _spread_pixels(camera: AbstractCamera, pixels: int) -> Array:
    """Returns centres of pixels, evenly over the whole picture."""
    count = camera.width * camera.height
    numbers = np.unique(np.linspace(0, count - 1, min(pixels, count)).round().astype(int))
    rows, columns = np.divmod(numbers, camera.width)
    return jnp.asarray(np.stack([columns, rows], axis=-1) + 0.5)


class _Line(NamedTuple):
    """A function of the scene, along a random direction of one leaf."""

    value: Callable[[float], float]
    direction: np.ndarray

    @staticmethod
    def through(value: Callable, scene: Scene, index: int, rng: np.random.Generator) -> "_Line":
        leaves, treedef = jax.tree.flatten(scene)
        direction = rng.normal(size=leaves[index].shape)

        def moved(step: float) -> float:
            changed = [*leaves[:index], leaves[index] + step * direction, *leaves[index + 1 :]]
            return float(value(jax.tree.unflatten(treedef, changed)))

        return _Line(moved, direction)

    def nearest_difference(self, automatic: float) -> float:
        # (f(h) - f(-h)) / (2 h), for the best of several h
        central = [(self.value(step) - self.value(-step)) / (2 * step) for step in _STEPS]
        return min(central, key=lambda x: abs(x - automatic) if np.isfinite(x) else np.inf)

    def nearest_at_kink(self, automatic: float) -> float:
        # Any number between (f(0) - f(-h)) / h and (f(h) - f(0)) / h is a subgradient.
        step, here = _STEPS[-1], self.value(0.0)
        before, after = here - self.value(-step), self.value(step) - here
        low, high = sorted([before / step, after / step])
        return min(max(automatic, low), high)


def _judge(
    path: str, automatic: float, line: _Line, noise: float, tolerance: float
) -> GradientCheck:
    def differs(x: float) -> bool:
        return not abs(automatic - x) <= tolerance * max(abs(automatic), abs(x)) + noise

    best = line.nearest_difference(automatic)
    if differs(best) and np.isfinite(automatic):
        best = line.nearest_at_kink(automatic)
    larger = max(abs(automatic), abs(best))
    error = abs(automatic - best) / larger if larger > 0 else 0.0
    if not np.isfinite(automatic) or not np.isfinite(best):
        return GradientCheck(path, automatic, best, float("nan"), "not finite")
    if larger <= noise:
        return GradientCheck(path, automatic, best, error, "zero")
    return GradientCheck(path, automatic, best, error, "wrong" if differs(best) else "right")
