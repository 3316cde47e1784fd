import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Scalar, Vector
from ..images import as_color
from ..numerics import (
    as_float_leaf,
    dot,
    require_finite,
    require_not_negative,
    safe_norm,
    safe_normalise,
)
from ..rays import LampPolygons
from ..shapes import Rectangle
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


class RectangleLight(AbstractSizedLight):
    """A lamp in the form of a rectangle, or a parallelogram, such as a window or a panel.

    Its normal is `edge_u x edge_v`: a lamp of one side shines to where that points.

    **Arguments:**

    - `center`: the centre.
    - `edge_u`, `edge_v`: vectors from the centre to the middles of two sides: half edges.
    - `radiance`: radiance, the same in all directions: the colour that a camera sees. The power is
      pi times this, times the area, for each side.
    - `two_sided`: if false, only the side of the normal shines, and the other one is black; static.
    - `splits`: shadows are computed of `splits * splits` parts of the lamp, each as if all of it
      were seen alike; more parts take longer and come nearer to the truth where an occluder is
      near to a large lamp; static.

    **Source:** Arvo 1994, "The Irradiance Jacobian for Partially Occluded Polyhedral Sources"
    (Lambert's formula); Heitz et al. 2016, "Real-Time Polygonal-Light Shading with Linearly
    Transformed Cosines" (highlights).

    Example: a panel above a floor.

    ```python
    panel = sg.RectangleLight([0.0, 0, 2], [0.5, 0, 0], [0, -0.5, 0], [10.0, 10, 10])
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.6, 0.6]))
    scene = sg.Scene(sg.Group(panel=panel, floor=floor))
    ```
    """

    center: Vector = eqx.field(converter=as_float_leaf)
    edge_u: Vector = eqx.field(converter=as_float_leaf)
    edge_v: Vector = eqx.field(converter=as_float_leaf)
    radiance: Color = eqx.field(converter=as_color)
    two_sided: bool = eqx.field(static=True, default=True)
    splits: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require_finite(self, "center", "edge_u", "edge_v")
        require_not_negative(self, "radiance")
        if self.splits < 1:
            raise ValueError(f"`RectangleLight.splits` must be at least 1; got {self.splits}.")

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        # The sides of a part are the lamp's, which are two half edges, by the number of splits.
        sides = 2 / self.splits * jnp.stack([self.edge_u, self.edge_v])
        centers = self._at(_part_centers(self.splits))
        sides = jnp.broadcast_to(sides, (len(centers), 2, 3))
        return lamp_sample(self, point, d_point, centers, sides)

    def outlines(self, point: Vector) -> LampPolygons:
        around = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]]) / self.splits
        corners = self._at(_part_centers(self.splits)[:, None] + around) - point
        # Counterclockwise, seen from the side of the normal.
        is_front = dot(jnp.cross(self.edge_u, self.edge_v), point - self.center) > 0
        corners = jnp.where(is_front, corners, corners[:, ::-1])
        shines = is_front | self.two_sided
        radiance = jnp.where(shines, self.radiance, 0)
        return LampPolygons(corners, jnp.broadcast_to(radiance, (len(corners), 3)))

    def _at(self, place: Float[np.ndarray, "*some 2"]) -> Float[Array, "*some 3"]:
        """Returns points of the lamp by their coordinates, from -1 to 1."""
        u, v = (jnp.asarray(x, self.center.dtype) for x in np.split(place, 2, axis=-1))
        return self.center + u * self.edge_u + v * self.edge_v

    def body(self) -> LampBody:
        normal = safe_normalise(jnp.cross(self.edge_u, self.edge_v))
        matrix = jnp.stack([self.edge_u, self.edge_v, normal], axis=1)
        shape = Rectangle(size=jnp.full(2, 2, self.center.dtype))
        return LampBody(shape, matrix, self.center)

    def sample_point(self, point: Vector, uniform: Float[Array, "2"]) -> LightPoint:
        place = 2 * uniform - 1
        position = self.center + place[0] * self.edge_u + place[1] * self.edge_v
        normal = safe_normalise(jnp.cross(self.edge_u, self.edge_v))
        shines = (dot(normal, point - position) > 0) | self.two_sided
        radiance = jnp.where(shines, self.radiance, 0)
        return LightPoint(position, normal, radiance, self.density(point, position, normal))

    def density(self, point: Vector, position: Vector, normal: Vector) -> Scalar:
        area = 4 * safe_norm(jnp.cross(self.edge_u, self.edge_v))
        return density_by_area(area, point, position, normal)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        u, v = transform.direction(self.edge_u), transform.direction(self.edge_v)
        # A mirror turns u x v to the other side.
        mirrors = is_mirrored(transform)
        edges = jnp.where(mirrors, v, u), jnp.where(mirrors, u, v)
        values = transform.point(self.center), *edges
        return eqx.tree_at(lambda x: (x.center, x.edge_u, x.edge_v), self, values)


def _part_centers(splits: int) -> Float[np.ndarray, "parts 2"]:
    """Returns the centres of the parts of the square from -1 to 1."""
    # (2 i + 1) / n - 1
    middles = (2 * np.arange(splits) + 1) / splits - 1
    return np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
