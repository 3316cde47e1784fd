"""Derivatives of pictures by finite differences of hard visibility, in plain numpy."""

import dataclasses
from typing import Any

import numpy as np
from scenes import leaf_value, moved

import support.hard_surfaces as hard


# Lines of a pixel: points of a Fibonacci lattice, no two of which share a row or a column, so that
# an edge along the pixels' sides meets as many different ones as any other.
LINES, _TURN = 2584, 1597
_ROWS = 6


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


def picture(spec: dict[str, Any]) -> np.ndarray:
    """Means over all lines of every pixel, `height width 3`."""
    camera = spec["camera"]
    color = lambda x: hard.Checker(**x) if isinstance(x, dict) else x
    things = [hard.Thing(shape(x), color(x["color"]), lit=x["lit"]) for x in spec["things"]]
    lamp = spec["lamp"] and hard.Lamp(**spec["lamp"])
    ahead = np.subtract(camera["target"], camera["eye"])
    ahead = ahead / np.linalg.norm(ahead)
    right = np.cross(ahead, camera["up"])
    right /= np.linalg.norm(right)
    above, (width, height) = np.cross(right, ahead), (camera["width"], camera["height"])
    focal = width / 2 / np.tan(camera["fov"] / 2)
    number = np.arange(LINES)
    u, v = (number + 0.5) / LINES, (number * _TURN % LINES + 0.5) / LINES
    blocks = []
    for first in range(0, height, _ROWS):
        rows = np.arange(first, min(first + _ROWS, height))[:, None, None]
        y = np.broadcast_to(rows + v, (len(rows), width, LINES)) - height / 2
        x = np.broadcast_to(np.arange(width)[:, None] + u, y.shape) - width / 2
        axes = zip(right, above, ahead, strict=True)
        directions = np.stack([(r * x - a * y) / focal + f for r, a, f in axes])
        flat = np.ascontiguousarray(directions.reshape(3, -1))
        origin = hard.column(camera["eye"])
        seen = hard.look_along(things, origin, flat, lamp, spec["background"])
        blocks.append(seen.reshape(directions.shape).mean(-1))
    return np.moveaxis(np.concatenate(blocks, axis=1), 0, -1)


def derivative(spec: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the derivative by the leaf, and its difference from that of the step alone."""
    value, step = leaf_value(spec), spec["step"]

    def difference(step: float) -> np.ndarray:
        ahead, behind = (picture(moved(spec, value + s)) for s in (step, -step))
        return (ahead - behind) / (2 * step)

    # Richardson: (4 D(h / 2) - D(h)) / 3 is right to the fourth order.
    half, whole = difference(step / 2), difference(step)
    return (4 * half - whole) / 3, (half - whole) / 3
