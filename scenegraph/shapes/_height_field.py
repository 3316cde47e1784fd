from functools import lru_cache
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..numerics import as_float_leaf, require_finite, require_finite_rows, require_positive
from ..rays import Hit, Ray
from ..transforms import Ball
from ._base import AbstractShape
from ._bounds import AbstractBounded
from ._face_order import FEW, order_faces
from ._triangle_mesh import TriangleMesh


class HeightField(AbstractShape, AbstractBounded):
    """A terrain: heights over a rectangular grid, two triangles a cell.

    The triangles' shares of a pixel are exact, as those of a `TriangleMesh`, and derivatives by
    heights are those of the triangles' corners. A cell is divided between its corners with the
    smallest x and largest y and the other way round. `uv` are x and y from the centre, in the
    field's units.

    **Arguments:**

    - `heights`: z above the centre, `rows columns`, at least two of each; rows run along y, columns
      along x, and `heights[0, 0]` is at the smallest x and y.
    - `size`: the lengths along x and y; positive.
    - `center`: the middle of the grid, at height 0.
    - `base`: the height of a bottom, below all others, with walls around that close the field;
      none by default.
    - `smooth`: if true, normals are interpolated between grid points, where they are those of
      central differences; if false, each triangle is flat; walls are flat in any case; static.

    **Errors:**

    `ValueError` for fewer than two rows or columns, and numbers that are not finite.

    Example: a hill.

    ```python
    x, y = np.meshgrid(np.linspace(-2, 2, 33), np.linspace(-2, 2, 33))
    hill = sg.Surface(sg.HeightField(np.exp(-(x**2) - y**2), [4.0, 4.0]), [0.4, 0.6, 0.3])
    ```
    """

    heights: Float[Array, "rows columns"] = eqx.field(converter=as_float_leaf)
    size: Float[Array, "2"] = eqx.field(converter=as_float_leaf, default=(1.0, 1.0))
    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    base: Scalar | None = eqx.field(
        converter=lambda x: None if x is None else as_float_leaf(x), default=None
    )
    smooth: bool = eqx.field(static=True, default=True)

    is_convex: ClassVar[bool] = False
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "size")
        require_finite(self, "center")
        shape = jnp.shape(self.heights)
        if len(shape) != 2:
            return  # a stack of fields, or the place of a tied leaf
        if min(shape) < 2:
            raise ValueError(
                f"`HeightField.heights` needs at least two rows and two columns; got {shape}."
            )
        require_finite_rows(self, "heights")

    @property
    def two_sided(self) -> bool:
        """True: it is seen from below as well."""
        return True

    def bounding_ball(self) -> Ball:
        return self.mesh().bounding_ball()

    def mesh(self) -> TriangleMesh:
        """Makes the triangles of the field.

        **Returns:**

        A mesh with the field's leaves: of `rows * columns` vertices, row by row, and of those of
        walls and bottom where it has a base.
        """
        rows, columns = self.heights.shape
        dtype = self.heights.dtype
        along = lambda count: jnp.asarray(np.linspace(-0.5, 0.5, count), dtype)
        x, y = jnp.meshgrid(self.size[0] * along(columns), self.size[1] * along(rows))
        top = jnp.stack([x, y, self.heights], axis=-1).reshape(-1, 3)
        up = self._normals().reshape(-1, 3)
        if self.base is None:
            return self._joined(top, up, _faces(rows, columns, False))
        wall, outward = _walls(rows, columns)
        bottom = jnp.full((4,), self.base, dtype)
        corners = top[jnp.asarray([0, columns - 1, rows * columns - 1, (rows - 1) * columns])]
        points = [
            top,
            top[wall],
            top[wall].at[:, 2].set(self.base),
            corners.at[:, 2].set(bottom),
        ]
        down = jnp.broadcast_to(jnp.asarray([0.0, 0.0, -1.0], dtype), (4, 3))
        sides = jnp.asarray(outward, dtype)
        normals = jnp.concatenate([up, sides, sides, down])
        return self._joined(jnp.concatenate(points), normals, _faces(rows, columns, True))

    def _joined(self, points: Array, normals: Array, faces: np.ndarray) -> TriangleMesh:
        uv, points = points[:, :2], points + self.center
        return TriangleMesh(points, faces, normals if self.smooth else None, uv, smooth=self.smooth)

    def _normals(self) -> Float[Array, "rows columns 3"]:
        """Returns normals at grid points, of any length: (-dz/dx, -dz/dy, 1)."""
        steps = self.size / jnp.asarray([n - 1 for n in self.heights.shape[::-1]])
        slope_y, slope_x = jnp.gradient(self.heights)
        up = jnp.ones_like(self.heights)
        return jnp.stack([-slope_x / steps[0], -slope_y / steps[1], up], axis=-1)

    def coverage(self, ray: Ray) -> Scalar:
        return self.mesh().coverage(ray)

    def parts(self, ray: Ray) -> Hit:
        """Intersects a ray with all triangles; see `AbstractShape.parts`.

        **Arguments:**

        - `ray`: one ray, in the field's frame.

        **Returns:**

        The hit on the nearest layer of triangles, as one part.
        """
        return self.mesh().parts(ray)


# Shapes of faces, which are searched for together.
FACETED = (TriangleMesh, HeightField)


def as_mesh(shape: Any) -> TriangleMesh:
    """Returns the triangles of a shape of faces."""
    return shape.mesh() if isinstance(shape, HeightField) else shape


def _walls(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the grid points along the four walls, counter-clockwise, and their normals."""
    number = np.arange(rows * columns).reshape(rows, columns)
    sides = [number[0], number[:, -1], number[-1, ::-1], number[::-1, 0]]
    normals = [[0.0, -1, 0], [1.0, 0, 0], [0.0, 1, 0], [-1.0, 0, 0]]
    outward = [np.tile(normal, (len(side), 1)) for normal, side in zip(normals, sides, strict=True)]
    return np.concatenate(sides), np.concatenate(outward)


@lru_cache(maxsize=8)
def _faces(rows: int, columns: int, closed: bool) -> np.ndarray:
    """Returns the faces of a field, counter-clockwise seen from outside; near ones together."""
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b = number[:-1, :-1].ravel(), number[:-1, 1:].ravel()
    d, c = number[1:, :-1].ravel(), number[1:, 1:].ravel()
    # The cell (a, b, c, d), counter-clockwise from the smallest x and y on, divided along b d.
    faces = np.stack([np.stack([a, b, d], 1), np.stack([b, c, d], 1)], axis=1).reshape(-1, 3)
    if len(faces) > FEW:
        y, x = np.divmod(number.ravel(), columns)
        places = np.stack([x / columns, y / rows, 0 * x], axis=-1)
        faces = faces[order_faces(places[faces].mean(axis=1))]
    if not closed:
        return faces
    first, count = rows * columns, 2 * (rows + columns)
    parts = [faces]
    for length in (columns, rows, columns, rows):
        upper = first + np.arange(length)
        lower = upper + count
        left, right, below, beside = upper[:-1], upper[1:], lower[:-1], lower[1:]
        parts += [np.stack([below, beside, right], 1), np.stack([below, right, left], 1)]
        first += length
    corner = rows * columns + 2 * count
    parts.append(corner + np.array([[0, 2, 1], [0, 3, 2]]))
    return np.concatenate(parts)
