"""Derivatives of pictures by finite differences of hard visibility, in plain numpy."""

import dataclasses
import functools
from typing import Any

import numpy as np
from scenes import leaf_value, moved, weights

import support.hard_surfaces as hard


# Lines of a pixel: points of Fibonacci lattices, no two of which share a row or a column, so that
# an edge along the pixels' sides meets as many different ones as any other. With each goes the part
# of the scene's step that it resolves about as well as the others.
_LATTICES = ((10_946, 6_765, 0.5), (46_368, 28_657, 0.125), (75_025, 46_368, 0.06))
# So many lines are worked on at once.
_LINES = 1_000_000
# The part of its size within which the sums of two lattices have to agree.
_AGREE = 1 / 300


@dataclasses.dataclass
class Mesh:
    """Triangles; a line meets the nearest."""

    vertices: Any
    faces: Any

    def span(self, origin, direction):
        nearest = np.full(direction.shape[1], np.inf)
        for face in self.faces:
            corners = np.asarray(self.vertices)[face]
            a, b, c = (corner[:, None] - origin for corner in corners)
            sides = [
                hard.dot(direction, np.cross(p, q, axis=0)) for p, q in ((a, b), (b, c), (c, a))
            ]
            normal = np.cross(b - a, c - a, axis=0)
            with np.errstate(all="ignore"):
                t = hard.dot(a, normal) / hard.dot(direction, normal)
            inside = np.all(np.stack(sides) >= 0, 0) | np.all(np.stack(sides) <= 0, 0)
            nearest = np.where(inside & (t > 0), np.minimum(nearest, t), nearest)
        return nearest, np.where(np.isfinite(nearest), nearest, -np.inf)


def shape(thing: dict[str, Any]) -> Any:
    kind = {"sphere": hard.Sphere, "box": hard.Box, "rectangle": hard.Rectangle, "mesh": Mesh}
    kind |= {"cylinder": hard.Cylinder}
    fields = {k: v for k, v in thing.items() if k not in ("kind", "color", "lit")}
    return kind[thing["kind"]](**fields)


def sky(texels: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """What lines see of a panorama: between the centres of texels, around and down to the poles."""
    x, y, z = direction
    height, width, _ = texels.shape
    row = (0.5 - np.arctan2(z, np.hypot(x, y)) / np.pi) * height - 0.5
    column = (0.5 + np.arctan2(y, x) / (2 * np.pi)) * width - 0.5
    total = 0.0
    for i in (np.floor(row), np.floor(row) + 1):
        for j in (np.floor(column), np.floor(column) + 1):
            weight = (1 - np.abs(row - i)) * (1 - np.abs(column - j))
            at = np.clip(i, 0, height - 1).astype(int), j.astype(int) % width
            total = total + weight[:, None] * texels[at]
    return np.asarray(total).T


def picture(spec: dict[str, Any], lines: int = 10_946, turn: int = 6_765) -> np.ndarray:
    """Means over all lines of every pixel, `height width 3`."""
    camera = spec["camera"]
    color = lambda x: hard.Checker(**x) if isinstance(x, dict) else x
    things = [hard.Thing(shape(x), color(x["color"]), lit=x["lit"]) for x in spec["things"]]
    lamp = spec["lamp"] and hard.Lamp(**spec["lamp"])
    behind = functools.partial(sky, np.array(spec["sky"])) if spec["sky"] else spec["background"]
    ahead = np.subtract(camera["target"], camera["eye"])
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, camera["up"])
    right /= np.linalg.norm(right)
    above, (width, height) = np.cross(right, ahead), (camera["width"], camera["height"])
    parallel = "extent" in camera
    focal = width / (camera["extent"] if parallel else 2 * np.tan(camera["fov"] / 2))
    number, together = np.arange(lines), max(1, _LINES // (width * lines))
    u, v = (number + 0.5) / lines, (number * turn % lines + 0.5) / lines
    blocks = []
    for first in range(0, height, together):
        rows = np.arange(first, min(first + together, height))[:, None, None]
        y = np.broadcast_to(rows + v, (len(rows), width, lines)) - height / 2
        x = np.broadcast_to(np.arange(width)[:, None] + u, y.shape) - width / 2
        axes = zip(right, above, ahead, strict=True)
        ways = np.stack([(r * x - a * y) / focal + (0 if parallel else f) for r, a, f in axes])
        flat = np.ascontiguousarray(ways.reshape(3, -1))
        origin = hard.column(camera["eye"])
        if parallel:
            origin, flat = origin + flat, np.ascontiguousarray(0 * flat + hard.column(ahead))
        seen = hard.look_along(things, origin, flat, lamp, behind)
        blocks.append(seen.reshape(ways.shape).mean(-1))
    return np.moveaxis(np.concatenate(blocks, axis=1), 0, -1)


def derivative(spec: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns the derivative by the leaf, how the last refinement changed it, and its step.

    The step is made smaller, with more lines, until sums of the derivative agree, or to the last
    one: a picture has kinks where an edge passes a pixel's side or another edge, which a step must
    not straddle.
    """
    found, step, shift = np.zeros(()), np.inf, np.zeros(())
    for lines, turn, part in _LATTICES:
        before, step = found, part * spec["step"]
        found = _extrapolated(spec, lines, turn, step)
        shift = before - found
        if relative(found + shift, found) < _AGREE:
            break
    return found, shift, step


def _extrapolated(spec: dict[str, Any], lines: int, turn: int, step: float) -> np.ndarray:
    """The derivative by differences with a step and its half, extrapolated by Richardson's rule."""
    value = leaf_value(spec)
    at = lambda step: picture(moved(spec, value + step), lines, turn)
    if spec["ahead"]:
        # (f(h) - f(0)) / h errs by the first power of the step.
        here = at(0.0)
        half, whole = (at(step / 2) - here) / (step / 2), (at(step) - here) / step
        return 2 * half - whole
    # (f(h) - f(-h)) / 2h errs by its square.
    half, whole = ((at(h) - at(-h)) / (2 * h) for h in (step / 2, step))
    return (4 * half - whole) / 3


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """The error of the weighted sum, in parts of what the sum would be without cancellation."""
    weight = weights(*expected.shape[:2])
    return float(abs(np.sum(weight * (found - expected))) / np.sum(np.abs(weight * expected)))
