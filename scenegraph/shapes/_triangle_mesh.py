from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, ArrayLike, Float, Int, Scalar
from ..numerics import as_float_leaf, max_or_nan, min_or_nan, safe_norm, safe_normalise
from ..rays import Hit, Ray
from ..transforms import Ball
from ._base import AbstractShape, join_parts
from ._bounds import AbstractBounded
from ._mesh_checks import as_faces, check_mesh
from ._sheets import first_sheet, shadow_of
from ._triangle import cross_triangle, Triangle


class TriangleMesh(AbstractShape, AbstractBounded):
    """A surface of triangles that share vertices.

    A triangle's share of a pixel is exact, and the shares of
    triangles that lie side by side add. Where two share an edge their derivatives cancel, and what
    remains is that of the silhouette. Rays are tested against the triangles near to them only.

    **Arguments:**

    - `vertices`: the corners, `vertices 3`.
    - `faces`: three vertices for each triangle, by number, `faces 3`; counter-clockwise, seen from
      outside. More than 1,024 are kept in an order in which neighbours are near to each other.
    - `normals`: a normal for each vertex, of any length but zero; by default, the mean of those of
      its faces, weighted by area.
    - `uv`: surface coordinates for each vertex, `vertices 2`; zero by default.
    - `colors`: a colour for each vertex, `vertices 3`, for `VertexColor`; white by default.
    - `smooth`: if true, normals are interpolated between vertices; if false, each face is flat;
      static.
    - `two_sided`: if false, a face is there only for eyes, and for lamps, that its front is turned
      to, which is the side from which its corners run counter-clockwise; static. A closed mesh with
      its fronts outside looks the same from outside, and takes less time.

    **Errors:**

    `ValueError` for a mesh without faces, numbers of vertices that do not exist, arrays of other
    lengths than the vertices', numbers that are not finite, and a mesh whose faces have no area.
    Faces without area, and those that are there twice, are left out; a warning counts them.

    Example: a square of two triangles.

    ```python
    square = sg.TriangleMesh(
        [[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], smooth=False
    )
    tile = sg.Surface(square, [0.8, 0.2, 0.1])
    ```
    """

    vertices: Float[Array, "vertices 3"]
    faces: Int[Array, "faces 3"]
    normals: Float[Array, "vertices 3"] | None
    uv: Float[Array, "vertices 2"] | None
    colors: Float[Array, "vertices 3"] | None
    smooth: bool = eqx.field(static=True)
    two_sided: bool = eqx.field(static=True)

    is_convex: ClassVar[bool] = False
    has_uv: ClassVar[bool] = True

    def __init__(
        self,
        vertices: ArrayLike | Any,
        faces: ArrayLike | Any,
        normals: ArrayLike | Any = None,
        uv: ArrayLike | Any = None,
        colors: ArrayLike | Any = None,
        smooth: bool = True,
        two_sided: bool = True,
    ):
        optional = lambda value: None if value is None else as_float_leaf(value)
        self.vertices = as_float_leaf(vertices)
        self.faces = as_faces(faces, self.vertices)
        self.normals, self.uv, self.colors = optional(normals), optional(uv), optional(colors)
        self.smooth, self.two_sided = smooth, two_sided

    def __check_init__(self):
        check_mesh(self)

    def bounding_ball(self) -> Ball:
        low, high = min_or_nan(self.vertices, 0), max_or_nan(self.vertices, 0)
        center = (low + high) / 2
        return Ball(center, max_or_nan(safe_norm(self.vertices - center), 0))

    def triangles(self) -> Triangle:
        """Gathers the faces with their corners.

        **Returns:**

        All triangles, with a leading axis.
        """
        corners, (normals, uv, colors) = self.vertices[self.faces], self.vertex_values()
        if self.smooth:
            normals = normals[self.faces]
        else:
            normals = jnp.broadcast_to(safe_normalise(_cross(corners))[:, None], corners.shape)
        return Triangle(corners, normals, uv[self.faces], colors[self.faces], corners)

    def vertex_values(
        self,
    ) -> tuple[Float[Array, "vertices 3"], Float[Array, "vertices 2"], Float[Array, "vertices 3"]]:
        """Returns the vertices' normals (zero for flat faces), uv and colours, with defaults."""
        uv = jnp.zeros_like(self.vertices[:, :2]) if self.uv is None else self.uv
        colors = jnp.ones_like(self.vertices) if self.colors is None else self.colors
        normals = jnp.zeros_like(self.vertices)
        if self.smooth and self.normals is not None:
            normals = safe_normalise(self.normals)
        elif self.smooth:
            # Twice the area, along the normal: added, they are means weighted by area.
            areas = _cross(self.vertices[self.faces])[:, None]
            normals = safe_normalise(normals.at[self.faces].add(areas))
        return normals, uv, colors

    def coverage(self, ray: Ray) -> Scalar:
        fragments = jax.vmap(cross_triangle, (None, 0))(ray, self.triangles().corners)
        return shadow_of(fragments, self.two_sided)

    def parts(self, ray: Ray) -> Hit:
        """Intersects a ray with all triangles; see `AbstractShape.parts`.

        **Arguments:**

        - `ray`: one ray, in the mesh's frame.

        **Returns:**

        The hit on the nearest layer of triangles, as one part.
        """
        return join_parts(first_sheet(ray, self.triangles(), self.two_sided))


def _cross(corners: Float[Array, "faces 3 3"]) -> Float[Array, "faces 3"]:
    """Returns twice the area of every face, along its normal."""
    a, b, c = jnp.moveaxis(corners, 1, 0)
    return jnp.cross(b - a, c - a)
