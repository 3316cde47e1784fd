"""Round lamps: disks and spheres, as polygons and as parts of disks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_color
from ..numerics import (
    as_float_leaf,
    dot,
    polygon_irradiance,
    require_finite,
    require_nonzero,
    require_not_negative,
    safe_divide,
    safe_norm,
    safe_normalise,
    safe_sqrt,
    tangents,
)
from ..rays import LampPolygons
from ..shapes import Disk, Sphere
from ..transforms import AbstractTransform
from ._base import AbstractLight, LightSample
from ._sized import (
    AbstractSizedLight,
    density_by_area,
    is_mirrored,
    lamp_sample,
    LampBody,
    LightPoint,
)


# Corners of the polygon that stands for a circle.
_CORNERS = 12


class DiskLight(AbstractSizedLight):
    """A lamp in the form of a disk.

    **Arguments:**

    - `center`: the centre.
    - `normal`: the normal, of any length but zero; a lamp of one side shines to where it points.
    - `radius`: the radius.
    - `radiance`: radiance, the same in all directions: the colour that a camera sees. The power is
      pi times this, times the area, for each side.
    - `two_sided`: if false, only the side of the normal shines, and the other one is black; static.
    - `splits`: shadows are computed of `splits * splits` parts of the lamp, of equal area; static.

    A polygon of the disk's area stands for it: light and highlights are those of the polygon.

    **Source:** as for `RectangleLight`; Shirley and Chiu 1997, "A Low Distortion Map Between Disk
    and Square" (the parts).

    Example: a ceiling lamp.

    ```python
    lamp = sg.DiskLight([0.0, 0, 2], [0.0, 0, -1], 0.3, [20.0, 20, 18], two_sided=False)
    ```
    """

    center: Vector = eqx.field(converter=as_float_leaf)
    normal: Vector = eqx.field(converter=as_float_leaf)
    radius: Scalar = eqx.field(converter=as_float_leaf)
    radiance: Color = eqx.field(converter=as_color)
    two_sided: bool = eqx.field(static=True, default=True)
    splits: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require_finite(self, "center")
        require_nonzero(self, "normal")
        require_not_negative(self, "radius", "radiance")
        if self.splits < 1:
            raise ValueError(f"`DiskLight.splits` must be at least 1; got {self.splits}.")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        across = self.radius * jnp.stack(tangents(safe_normalise(self.normal)))
        return lamp_sample(self, point, d_point, *_parts_of_disk(self.center, across, self.splits))

    def outlines(self, point: Vector) -> LampPolygons:
        normal = safe_normalise(self.normal)
        across = self.radius * jnp.stack(tangents(normal))
        corners = _outlines_of_disk(self.center, across, self.splits) - point
        is_front = dot(normal, point - self.center) > 0
        corners = jnp.where(is_front, corners, corners[:, ::-1])
        radiance = jnp.where(is_front | self.two_sided, self.radiance, 0)
        return LampPolygons(corners, jnp.broadcast_to(radiance, (len(corners), 3)))

    def body(self) -> LampBody:
        normal = safe_normalise(self.normal)
        u, v = self.radius * jnp.stack(tangents(normal))
        matrix = jnp.stack([u, v, normal], axis=1)
        return LampBody(Disk(), matrix, self.center)

    def sample_point(self, point: Vector, uniform: Float[Array, "2"]) -> LightPoint:
        normal = safe_normalise(self.normal)
        position = self.center + self.radius * _even_on_disk(uniform, normal)
        shines = (dot(normal, point - position) > 0) | self.two_sided
        radiance = jnp.where(shines, self.radiance, 0)
        return LightPoint(position, normal, radiance, self.density(point, position, normal))

    def density(self, point: Vector, position: Vector, normal: Vector) -> Scalar:
        return density_by_area(jnp.pi * self.radius**2, point, position, normal)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        u, v = tangents(safe_normalise(self.normal))
        u, v = transform.direction(u), transform.direction(v)
        across = jnp.cross(u, v)
        normal = jnp.where(is_mirrored(transform), -across, across)
        # A circle that is not turned to a circle becomes one of the same area.
        radius = self.radius * safe_sqrt(safe_norm(across))
        values = transform.point(self.center), safe_normalise(normal), radius
        return eqx.tree_at(lambda x: (x.center, x.normal, x.radius), self, values)


class SphereLight(AbstractSizedLight):
    """A lamp in the form of a sphere, which shines outwards.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the radius.
    - `radiance`: radiance, the same in all directions: the colour that a camera sees. The power is
      pi times this, times the area, `4 pi radius**2`.
    - `splits`: shadows are computed of `splits * splits` parts of the visible disk; static.

    Its light on a surface that all of it is above is exact; highlights are those of a polygon.

    **Source:** as for `RectangleLight`.

    Example: a glowing ball.

    ```python
    ball = sg.SphereLight([0.0, 0, 2], 0.2, [30.0, 30, 30])
    ```
    """

    center: Vector = eqx.field(converter=as_float_leaf)
    radius: Scalar = eqx.field(converter=as_float_leaf)
    radiance: Color = eqx.field(converter=as_color)
    splits: int = eqx.field(static=True, default=1)

    @property
    def two_sided(self) -> bool:
        """False: the inside does not shine."""
        return False

    def __check_init__(self):
        require_finite(self, "center")
        require_not_negative(self, "radius", "radiance")
        if self.splits < 1:
            raise ValueError(f"`SphereLight.splits` must be at least 1; got {self.splits}.")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        center, across, outside = self._visible_disk(point)
        centers, sides = _parts_of_disk(center, across, self.splits)
        # Rays end where they meet the sphere: at the distance of its nearest point at most.
        distance = safe_norm(self.center - point)
        far = safe_divide(distance - self.radius, safe_norm(center - point))
        far = jnp.where(outside, jnp.clip(far, 1e-3, 1), 1)
        return lamp_sample(self, point, d_point, centers, sides, far)

    def outlines(self, point: Vector) -> LampPolygons:
        center, across, outside = self._visible_disk(point)
        corners = _outlines_of_disk(center, across, self.splits)[:, ::-1] - point
        # Of a cone with the half angle s, the vector has the length pi sin^2(s).
        toward = safe_normalise(self.center - point)
        alike = jax.vmap(lambda part: polygon_irradiance(toward, part))(corners)
        total = dot(jnp.sum(alike, axis=0), toward)
        sine = safe_divide(self.radius, safe_norm(self.center - point))
        scale = safe_divide(jnp.pi * jnp.minimum(sine, 1) ** 2, total)
        radiance = jnp.where(outside, scale * self.radiance, 0)
        return LampPolygons(corners, jnp.broadcast_to(radiance, (len(corners), 3)))

    def _visible_disk(self, point: Vector) -> tuple[Vector, Float[Array, "2 3"], Scalar]:
        """Returns the disk that the sphere's outline bounds, and whether a point is outside."""
        away = self.center - point
        square = dot(away, away)
        outside = square > self.radius**2
        # Its plane is nearer by r^2 / d, and its radius is r sqrt(1 - r^2 / d^2).
        part = jnp.where(outside, self.radius**2 / jnp.where(outside, square, 1), 0)
        u, v = tangents(safe_normalise(away + jnp.where(square > 0, 0, 1)))
        radius = self.radius * safe_sqrt(1 - part)
        return self.center - part * away, radius * jnp.stack([u, v]), outside

    def body(self) -> LampBody:
        matrix = self.radius * jnp.eye(3, dtype=self.center.dtype)
        return LampBody(Sphere(), matrix, self.center, True)

    def sample_point(self, point: Vector, uniform: Float[Array, "2"]) -> LightPoint:
        away = self.center - point
        distance = safe_norm(away)
        toward = safe_normalise(away)
        # Even over the cone's solid angle: cos = 1 - u (1 - cos s).
        least = self._least_cosine(point)
        cosine = 1 - uniform[0] * (1 - least)
        sine = safe_sqrt(1 - cosine**2)
        u, v = tangents(toward)
        angle = 2 * jnp.pi * uniform[1]
        direction = cosine * toward + sine * (jnp.cos(angle) * u + jnp.sin(angle) * v)
        # The nearer crossing: d cos - sqrt(r^2 - d^2 sin^2)
        reach = distance * cosine - safe_sqrt(self.radius**2 - (distance * sine) ** 2)
        position = point + reach * direction
        normal = safe_normalise(position - self.center)
        radiance = jnp.where(distance > self.radius, self.radiance, 0)
        return LightPoint(position, normal, radiance, self.density(point, position, normal))

    def _least_cosine(self, point: Vector) -> Scalar:
        """Returns the cosine of half the angle that the sphere is seen under."""
        away = self.center - point
        sine = safe_divide(self.radius**2, dot(away, away))
        return safe_sqrt(1 - jnp.minimum(sine, 1))

    def density(self, point: Vector, position: Vector, normal: Vector) -> Scalar:
        del position, normal
        # 1 / (2 pi (1 - cos s)), with 1 - cos = sin^2 / (1 + cos)
        least = self._least_cosine(point)
        away = self.center - point
        sine = jnp.minimum(safe_divide(self.radius**2, dot(away, away)), 1)
        return safe_divide(1 + least, 2 * jnp.pi * sine)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        # A sphere that is not turned to a sphere becomes one of the same volume.
        x, y, z = transform.linear()
        volume = jnp.abs(dot(jnp.cross(x, y), z))
        radius = self.radius * volume ** (1 / 3)
        values = transform.point(self.center), radius
        return eqx.tree_at(lambda x: (x.center, x.radius), self, values)


def _even_on_disk(uniform: Float[Array, "2"], normal: Vector) -> Vector:
    """Returns a random vector within the unit disk across a normal."""
    u, v = tangents(normal)
    radius, angle = safe_sqrt(uniform[0]), 2 * jnp.pi * uniform[1]
    return radius * (jnp.cos(angle) * u + jnp.sin(angle) * v)


def _parts_of_disk(
    center: Vector, across: Float[Array, "2 3"], splits: int
) -> tuple[Float[Array, "parts 3"], Float[Array, "parts 2 3"]]:
    """Returns the centres of the parts of a disk, and parallelograms of their areas about them."""
    corners = _cells(splits)
    # A part's middle lines: from the middle of one side to that of the opposite one.
    sides = np.stack(
        [
            (corners[:, 0] + corners[:, 3] - corners[:, 1] - corners[:, 2]) / 2,
            (corners[:, 0] + corners[:, 1] - corners[:, 2] - corners[:, 3]) / 2,
        ],
        axis=1,
    )
    middles = corners.mean(axis=1)
    areas = np.abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0])
    sides = sides * np.sqrt(np.pi / splits**2 / areas)[:, None, None]
    in_space = lambda x: jnp.einsum("...k,kc->...c", jnp.asarray(x, across.dtype), across)
    return center + in_space(middles), in_space(sides)


def _outlines_of_disk(
    center: Vector, across: Float[Array, "2 3"], splits: int
) -> Float[Array, "parts corners 3"]:
    """Returns the outlines of the parts of a disk, of their areas, in the order of its axes."""
    if splits == 1:
        angle = 2 * np.pi * np.arange(_CORNERS) / _CORNERS
        # A regular polygon of n corners on a circle has the area n / 2 sin(2 pi / n).
        scale = np.sqrt(2 * np.pi / (_CORNERS * np.sin(2 * np.pi / _CORNERS)))
        corners = scale * np.stack([np.cos(angle), np.sin(angle)], axis=-1)[None]
    else:
        corners = _cells(splits)
        middle = corners.mean(axis=1, keepdims=True)
        edges = np.roll(corners, -1, axis=1)
        areas = np.sum(corners[..., 0] * edges[..., 1] - corners[..., 1] * edges[..., 0], axis=1)
        scale = np.sqrt(np.pi / splits**2 / (areas / 2))
        corners = middle + scale[:, None, None] * (corners - middle)
    return center + jnp.einsum("pnk,kc->pnc", jnp.asarray(corners, across.dtype), across)


def _cells(splits: int) -> Float[np.ndarray, "parts 4 2"]:
    """Returns the corners of parts of the unit disk of equal areas: those of a square, bent."""
    edges = np.linspace(-1, 1, splits + 1)
    x, y = np.meshgrid(edges, edges)
    # r = the larger coordinate, and the angle pi / 4 times the quotient, from that axis on.
    radius = np.where(np.abs(x) > np.abs(y), x, y)
    ratio = np.where(np.abs(x) > np.abs(y), y, x) / np.where(radius == 0, 1, radius)
    angle = np.where(np.abs(x) > np.abs(y), np.pi / 4 * ratio, np.pi / 2 - np.pi / 4 * ratio)
    bent = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    if splits == 1:
        bent = np.array([[[-1.0, -1], [1, -1]], [[-1, 1], [1, 1]]]) * np.sqrt(np.pi) / 2
    corners = bent[1:, 1:], bent[1:, :-1], bent[:-1, :-1], bent[:-1, 1:]
    return np.stack([x.reshape(-1, 2) for x in corners], axis=1)
