"""Hard visibility in plain numpy, written apart from the library: many straight lines a pixel.

Conventions of its own: points and directions are arrays `3 lines`; a frame is a 4x4 matrix "world
from local"; a shape answers with where lines enter and leave it (a flat one with the same number
twice), and nothing is filtered: every line meets one thing or none.
"""

import dataclasses
from typing import Any

import numpy as np


SAMPLES = 32  # lines along each side of a pixel
_START = 1e-6  # where shadow lines begin, as a part of the way to the lamp
_ROWS = 65_536  # about how many lines are worked on at once


# --- Shapes


def column(vector) -> np.ndarray:
    """A vector that broadcasts over lines."""
    return np.asarray(vector, float)[:, None]


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of every line's vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def roots(a, b, c) -> tuple[np.ndarray, np.ndarray]:
    """Between which `t` is `a t^2 + 2 b t + c` negative, for positive `a`?"""
    square = b * b - a * c
    half = np.sqrt(np.maximum(square, 0))
    missed = square < 0
    return np.where(missed, np.inf, (-b - half) / a), np.where(missed, -np.inf, (-b + half) / a)


def within(low, high, start, speed) -> tuple[np.ndarray, np.ndarray]:
    """When does something lie between two bounds that begins at `start` with some speed?"""
    speed = np.where(speed == 0, 1e-300, speed)
    one, other = (low - start) / speed, (high - start) / speed
    return np.minimum(one, other), np.maximum(one, other)


def both(one, other) -> tuple[np.ndarray, np.ndarray]:
    """The overlap of two stretches."""
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


@dataclasses.dataclass
class Sphere:
    center: Any
    radius: float

    def span(self, origin, direction):
        start = origin - column(self.center)
        c = dot(start, start) - self.radius**2
        return roots(dot(direction, direction), dot(start, direction), c)

    def normal(self, point):
        return point - column(self.center)


@dataclasses.dataclass
class Ellipsoid:
    """All points x with sum ((x - c) / r)^2 = 1."""

    center: Any
    radii: Any

    def span(self, origin, direction):
        start, way = (origin - column(self.center)), direction
        weights = column(1 / np.asarray(self.radii) ** 2)
        c = dot(weights * start, start) - 1
        return roots(dot(weights * way, way), dot(weights * start, way), c)

    def normal(self, point):
        return (point - column(self.center)) / column(np.asarray(self.radii) ** 2)


@dataclasses.dataclass
class Plane:
    point: Any
    up: Any = (0.0, 0.0, 1.0)

    def span(self, origin, direction):
        up = column(self.up)
        fall = dot(up, direction)
        t = dot(up, column(self.point) - origin) / np.where(fall == 0, 1e-300, fall)
        return t, t

    def normal(self, point):
        return np.broadcast_to(column(self.up), point.shape)


@dataclasses.dataclass
class Rectangle:
    center: Any
    size: Any

    def span(self, origin, direction):
        t, _ = Plane(self.center).span(origin, direction)
        away = np.abs(origin + t * direction - column(self.center))
        inside = (away[0] <= self.size[0] / 2) & (away[1] <= self.size[1] / 2)
        return np.where(inside, t, np.inf), np.where(inside, t, -np.inf)

    def normal(self, point):
        return Plane(self.center).normal(point)


@dataclasses.dataclass
class Disk:
    center: Any
    radius: float

    def span(self, origin, direction):
        t, _ = Plane(self.center).span(origin, direction)
        away = origin + t * direction - column(self.center)
        inside = away[0] ** 2 + away[1] ** 2 <= self.radius**2
        return np.where(inside, t, np.inf), np.where(inside, t, -np.inf)

    def normal(self, point):
        return Plane(self.center).normal(point)


@dataclasses.dataclass
class Box:
    lower: Any
    upper: Any

    def span(self, origin, direction):
        spans = [within(*x) for x in zip(self.lower, self.upper, origin, direction, strict=True)]
        return both(both(spans[0], spans[1]), spans[2])

    def normal(self, point):
        """Along the axis on which the point is farthest out."""
        middle, half = np.add(self.lower, self.upper) / 2, np.subtract(self.upper, self.lower) / 2
        away = (point - column(middle)) / column(half)
        axis = np.argmax(np.abs(away), axis=0)
        return np.where(np.arange(3)[:, None] == axis, np.sign(away), 0.0)


@dataclasses.dataclass
class Cylinder:
    """About z, closed at both ends."""

    center: Any
    radius: float
    height: float

    def span(self, origin, direction):
        start = origin - column(self.center)
        flat = direction * column([1, 1, 0])
        c = start[0] ** 2 + start[1] ** 2 - self.radius**2
        side = roots(np.maximum(dot(flat, flat), 1e-300), dot(start, flat), c)
        half = self.height / 2
        return both(side, within(-half, half, start[2], direction[2]))

    def normal(self, point):
        away = point - column(self.center)
        on_end = np.abs(away[2]) > self.height / 2 - 1e-9 * self.height
        return np.where(on_end, away * column([0, 0, 1]), away * column([1, 1, 0]))


@dataclasses.dataclass
class Capsule:
    start: Any
    end: Any
    radius: float

    def span(self, origin, direction):
        """Of two balls and of the rod between them, whose union is convex."""
        axis = column(np.subtract(self.end, self.start))
        start, length = origin - column(self.start), np.sum(axis**2)
        level, speed = dot(axis, start) / length, dot(axis, direction) / length
        away, ahead = start - level * axis, direction - speed * axis
        c = dot(away, away) - self.radius**2
        side = roots(np.maximum(dot(ahead, ahead), 1e-300), dot(away, ahead), c)
        rod = both(side, within(0, 1, level, speed))
        rod = np.where(rod[1] > rod[0], rod, column([np.inf, -np.inf]))
        balls = [Sphere(at, self.radius).span(origin, direction) for at in (self.start, self.end)]
        enters, leaves = zip(rod, *balls, strict=True)
        return np.min(enters, axis=0), np.max(leaves, axis=0)

    def normal(self, point):
        axis, away = column(np.subtract(self.end, self.start)), point - column(self.start)
        return away - np.clip(dot(axis, away) / np.sum(axis**2), 0, 1) * axis


# --- Scenes


@dataclasses.dataclass
class Checker:
    """Squares in x and y of the thing's own frame."""

    scale: float
    first: Any = (0.9, 0.9, 0.9)
    second: Any = (0.1, 0.1, 0.1)

    def __call__(self, local):
        odd = np.floor(local[:2] / self.scale).sum(0) % 2 == 1
        return np.where(odd, column(self.second), column(self.first))


@dataclasses.dataclass
class Thing:
    """A shape in a frame, with a colour: of the light it scatters, or (not `lit`) its own."""

    shape: Any
    color: Any
    frame: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(4))
    lit: bool = True

    def into(self, origin, direction):
        """A line in the thing's own frame."""
        inverse = np.linalg.inv(self.frame)
        turn, shift = inverse[:3, :3], column(inverse[:3, 3])
        return turn @ origin + shift, turn @ direction

    def meet(self, origin, direction, near: float):
        """The first `t` beyond `near`; infinite for lines that miss."""
        enter, leave = self.shape.span(*self.into(origin, direction))
        t = np.where(enter > near, enter, leave)
        return np.where((enter <= leave) & (t > near), t, np.inf)


@dataclasses.dataclass
class Lamp:
    position: Any
    intensity: Any


@dataclasses.dataclass
class Camera:
    """A pinhole; `fov` is the horizontal angle of view."""

    eye: Any
    target: Any
    up: Any
    fov: float
    width: int = 64
    height: int = 64

    def directions(self, rows: np.ndarray, samples: int) -> np.ndarray:
        """`3 rows samples width samples`: an even grid in every pixel."""
        ahead = np.subtract(self.target, self.eye) / np.linalg.norm(
            np.subtract(self.target, self.eye)
        )
        right = np.cross(ahead, self.up)
        right /= np.linalg.norm(right)
        above, focal = np.cross(right, ahead), self.width / 2 / np.tan(self.fov / 2)
        within = (np.arange(samples) + 0.5) / samples
        x = ((np.arange(self.width)[:, None] + within - self.width / 2) / focal)[None, None]
        y = ((rows[:, None] + within - self.height / 2) / focal)[:, :, None, None]
        return np.stack([r * x - a * y + f for r, a, f in zip(right, above, ahead, strict=True)])


def picture(things, camera: Camera, lamp: Lamp | None, background, samples: int = SAMPLES):
    """Means over pixels, `height width 3`."""
    count = max(1, _ROWS // (camera.width * samples**2))
    blocks = []
    for first in range(0, camera.height, count):
        rows = np.arange(first, min(first + count, camera.height))
        directions = camera.directions(rows, samples)
        flat = np.ascontiguousarray(directions.reshape(3, -1))
        seen = look_along(things, column(camera.eye), flat, lamp, background)
        blocks.append(seen.reshape(directions.shape).mean((2, 4)))
    return np.moveaxis(np.concatenate(blocks, axis=1), 0, -1)


def look_along(things, origin, direction, lamp: Lamp | None, background) -> np.ndarray:
    """What single lines see."""
    t = np.stack([thing.meet(origin, direction, 1e-9) for thing in things])
    nearest, first = np.argmin(t, axis=0), np.min(t, axis=0)
    behind = background(direction) if callable(background) else column(background)
    rgb = np.array(np.broadcast_to(behind, direction.shape))
    for number, thing in enumerate(things):
        (chosen,) = np.nonzero((nearest == number) & (first < np.inf))
        if len(chosen):
            ahead = direction[:, chosen]
            start = np.broadcast_to(origin, direction.shape)[:, chosen]
            rgb[:, chosen] = shade(things, thing, start + first[chosen] * ahead, ahead, lamp)
    return rgb


def shade(things, thing: Thing, point, direction, lamp: Lamp | None) -> np.ndarray:
    """The colour of a thing at its points: its own, or Lambert's law with hard shadows."""
    local, _ = thing.into(point, direction)
    color = thing.color(local) if callable(thing.color) else column(thing.color)
    if not thing.lit or lamp is None:
        return color if thing.lit is False else 0 * point
    normal = np.linalg.inv(thing.frame[:3, :3]).T @ thing.shape.normal(local)
    normal = normal * -np.sign(dot(normal, direction)) / np.sqrt(dot(normal, normal))
    away = column(lamp.position) - point
    squared = dot(away, away)
    cosine = np.maximum(dot(normal, away), 0) / np.sqrt(squared)
    (reached,) = np.nonzero(cosine > 0)
    free = np.zeros(len(cosine))
    free[reached] = visible(things, point[:, reached], away[:, reached])
    return color / np.pi * column(lamp.intensity) * (free * cosine / squared)


def visible(things, point, away) -> np.ndarray:
    """Whether nothing lies between points and the lamp."""
    free = np.ones(point.shape[1], bool)
    for thing in things:
        free &= ~(thing.meet(point, away, _START) < 1)
    return free
