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
    """What was found for one leaf.

    **Arguments:**

    - `path`: of the leaf.
    - `automatic`, `difference`: the slope along a random direction of the leaf, by automatic
      differentiation and by the finite difference that comes nearest. At a kink, the slope
      between those of both sides that comes nearest.
    - `error`: their distance, relative to the larger one.
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
    tell: Callable[[int, int], object] = lambda done, count: None,
) -> list[GradientCheck]:
    """Compares the gradient of every leaf with finite differences, in double precision.

    What is differentiated is a random mixture of all colours of all levels. Sample positions are
    held where the integrator stops gradients. Every leaf is moved along one random direction, by
    steps of several sizes, of which the best counts. At a kink, where the slopes of both sides
    differ, everything between them is right.

    **Arguments:**

    - `scene`: what is looked at.
    - `camera`: a camera, or the path of one in the scene, whose leaves are then checked too.
    - `integrator`: how it is rendered; by default as the scene says.
    - `where`: paths, or a function as for `select`; by default every leaf that is not frozen.
      Keyword only, as is all that follows.
    - `pixels`: how many, spread evenly over the picture.
    - `tolerance`: largest relative error of what is called right.
    - `tell`: is told how many leaves are done, and how many there are: first when nothing is yet
      compiled, which takes longest.

    **Returns:**

    One record a leaf.

    **Errors:**

    `ValueError` for a path that matches nothing, or at which there is no camera.
    """
    chosen = _chosen(scene, where)
    with jax.enable_x64(True):
        scene, camera, integrator = _double((scene, camera, integrator))
        numbered = _numbered(scene, chosen)
        tell(0, len(numbered))
        slope, held = _objectives(scene, camera, integrator, pixels)
        value, slopes = slope(scene)
        noise, slopes = (abs(float(value)) + 1.0) * _NOISE, jax.tree.leaves(slopes)
        checks, rng = [], np.random.default_rng(0)
        for index, path in numbered:
            line = _Line.through(held, scene, index, rng)
            automatic = float(np.sum(np.asarray(slopes[index]) * line.way))
            checks.append(_judge(path, automatic, line, noise, tolerance))
            tell(len(checks), len(numbered))
    return checks


def gradient_table(checks: Sequence[GradientCheck]) -> str:
    """The records as a table.

    **Arguments:**

    - `checks`: from `check_gradients`.

    **Returns:**

    Several lines of text.
    """
    width = max([len("leaf"), *(len(check.path) for check in checks)])
    lines = [f"{'leaf':{width}}  {'automatic':>12}  {'difference':>12}  {'error':>8}  verdict"]
    for c in checks:
        numbers = f"{c.automatic:12.5g}  {c.difference:12.5g}  {c.error:8.1e}"
        lines.append(f"{c.path:{width}}  {numbers}  {c.verdict}")
    return "\n".join(lines)


def _chosen(scene: Scene, where: Sequence[str] | Callable | None) -> PyTree:
    if where is None:
        return trainable_leaves(scene)
    if callable(where):
        return select(scene, where=where)
    return select(scene, *([where] if isinstance(where, str) else where))


def _double(tree: PyTree) -> PyTree:
    def convert(leaf: Any) -> Any:
        return jnp.asarray(np.asarray(leaf), float) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(convert, tree)


def _numbered(scene: Scene, chosen: PyTree) -> list[tuple[int, str]]:
    marks = jax.tree.leaves(chosen)
    paths = [path for path, _, _ in named_leaves(scene)]
    arrays = [index for index, leaf in enumerate(jax.tree.leaves(scene)) if eqx.is_array(leaf)]
    return [(i, path) for i, path in zip(arrays, paths, strict=True) if marks[i]]


def _objectives(
    scene: Scene, camera: AbstractCamera | str, integrator: AbstractIntegrator | None, pixels: int
) -> tuple[Callable, Callable]:
    """Value and gradient of a mixture of all colours; and its value with samples held."""
    integrator = choose_integrator(scene, integrator)
    centres = _spread(find_camera(scene, camera), pixels)

    def rays(scene: Scene) -> Ray:
        return jax.vmap(find_camera(scene, camera).ray)(centres)

    held = integrator.with_fixed_samples(flatten(scene), rays(scene))

    def mixture(scene: Scene, integrator: AbstractIntegrator) -> Scalar:
        levels = render_rays(scene, rays(scene), integrator)
        colors = jnp.stack([level.rgb for level in levels])
        return jnp.sum(jnp.asarray(np.random.default_rng(1).normal(size=colors.shape)) * colors)

    slope = eqx.filter_jit(eqx.filter_value_and_grad(mixture))
    plain = eqx.filter_jit(mixture)
    return lambda scene: slope(scene, integrator), lambda scene: plain(scene, held)


def _spread(camera: AbstractCamera, pixels: int) -> Array:
    """Centres of pixels, evenly over the whole picture."""
    count = camera.width * camera.height
    numbers = np.unique(np.linspace(0, count - 1, min(pixels, count)).round().astype(int))
    rows, columns = np.divmod(numbers, camera.width)
    return jnp.asarray(np.stack([columns, rows], axis=-1) + 0.5)


class _Line(NamedTuple):
    """A function of the scene, along a random direction of one leaf."""

    value: Callable[[float], float]
    way: np.ndarray

    @staticmethod
    def through(value: Callable, scene: Scene, index: int, rng: np.random.Generator) -> "_Line":
        leaves, treedef = jax.tree.flatten(scene)
        way = rng.normal(size=leaves[index].shape)

        def moved(step: float) -> float:
            changed = [*leaves[:index], leaves[index] + step * way, *leaves[index + 1 :]]
            return float(value(jax.tree.unflatten(treedef, changed)))

        return _Line(moved, way)

    def nearest_difference(self, automatic: float) -> float:
        """Of the central differences, the one that comes nearest."""
        central = [(self.value(step) - self.value(-step)) / (2 * step) for step in _STEPS]
        return min(central, key=lambda x: abs(x - automatic) if np.isfinite(x) else np.inf)

    def nearest_at_kink(self, automatic: float) -> float:
        """Of all slopes between those of both sides, the one that comes nearest."""
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
