from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Color, Float, Int, Scalar, Vector
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
from ..shapes import TriangleMesh
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


def _as_faces(value: Any) -> Any:
    return jnp.asarray(value, jnp.int32)


class MeshLight(AbstractSizedLight):
    """A lamp of triangles, of any form, such as a bent tube or a sign.

    Every face is a lamp of its own, with a shadow of its own: this is for some dozens of faces.

    **Arguments:**

    - `vertices`: the corners, `vertices 3`.
    - `faces`: three vertices for each triangle, by number, `faces 3`; counterclockwise, seen from
      the side to which a lamp of one side shines.
    - `radiance`: radiance, the same in all directions: the colour that a camera sees.
    - `two_sided`: if false, only the front sides shine, and the others are black; static.

    **Errors:**

    `ValueError` for vertices that do not exist, or without faces.

    **Source:** as for `RectangleLight`.

    Example: a triangle.

    ```python
    sign = sg.MeshLight([[0.0, 0, 2], [1, 0, 2], [0, 1, 2]], [[0, 1, 2]], [5.0, 1, 1])
    ```
    """

    vertices: Float[Array, "vertices 3"] = eqx.field(converter=as_float_leaf)
    faces: Int[Array, "faces 3"] = eqx.field(converter=_as_faces)
    radiance: Color = eqx.field(converter=as_color)
    two_sided: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        require_finite(self, "vertices")
        require_not_negative(self, "radiance")
        if not len(self.faces):
            raise ValueError("`MeshLight.faces` must have at least one face.")
        if isinstance(self.faces, Tracer):
            return
        faces, count = np.asarray(self.faces), len(self.vertices)
        wrong = np.argwhere((faces < 0) | (faces >= count))
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(
                f"`MeshLight.faces[{row}]` names vertex {faces[row, column]}; there are {count}."
            )

    def sample(self, point: Vector, d_point: Float[Array, "2 3"]) -> LightSample:
        corners = self.vertices[self.faces]
        # A parallelogram of the triangle's area, about its centre.
        edges = corners[:, 1:] - corners[:, :1]
        return lamp_sample(self, point, d_point, jnp.mean(corners, axis=1), edges * 0.5**0.5)

    def outlines(self, point: Vector) -> LampPolygons:
        corners = self.vertices[self.faces]
        normals = _area_vectors(corners)
        is_front = jax.vmap(dot)(normals, point - corners[:, 0]) > 0
        # Counterclockwise, seen from the front.
        corners = jnp.where(is_front[:, None, None], corners, corners[:, ::-1]) - point
        shines = is_front | self.two_sided
        return LampPolygons(corners, jnp.where(shines[:, None], self.radiance, 0))

    def body(self) -> LampBody:
        mesh = TriangleMesh(self.vertices, self.faces, smooth=False)
        unit = jnp.eye(3, dtype=self.vertices.dtype)
        return LampBody(mesh, unit, jnp.zeros_like(unit[0]), True)

    def sample_point(self, point: Vector, uniform: Float[Array, "2"]) -> LightPoint:
        corners = self.vertices[self.faces]
        areas = jax.vmap(safe_norm)(_area_vectors(corners)) / 2
        ends = jnp.cumsum(areas)
        begins = ends - areas
        place = uniform[0] * ends[-1]
        face = jnp.minimum(jnp.sum(place >= ends, dtype=jnp.int32), len(areas) - 1)
        # What is left of the first number is even again within the face.
        rest = jnp.clip((place - begins[face]) / jnp.maximum(areas[face], 1e-30), 0, 1)
        triangle = corners[face]
        # (1 - sqrt u) a + sqrt u ((1 - v) b + v c)
        root = jnp.sqrt(rest)
        weights = jnp.stack([1 - root, root * (1 - uniform[1]), root * uniform[1]])
        position = jnp.sum(weights[:, None] * triangle, axis=0)
        normal = safe_normalise(_area_vectors(triangle[None])[0])
        shines = (dot(normal, point - position) > 0) | self.two_sided
        radiance = jnp.where(shines, self.radiance, 0)
        return LightPoint(position, normal, radiance, self.density(point, position, normal))

    def density(self, point: Vector, position: Vector, normal: Vector) -> Scalar:
        areas = jax.vmap(safe_norm)(_area_vectors(self.vertices[self.faces])) / 2
        return density_by_area(jnp.sum(areas), point, position, normal)

    def moved(self, transform: AbstractTransform) -> AbstractLight:
        vertices = jax.vmap(transform.point)(self.vertices)
        faces = jnp.where(is_mirrored(transform), self.faces[:, ::-1], self.faces)
        return eqx.tree_at(lambda x: (x.vertices, x.faces), self, (vertices, faces))


def _area_vectors(corners: Float[Array, "faces 3 3"]) -> Float[Array, "faces 3"]:
    """Returns normals of triangles, twice as long as their areas."""
    return jnp.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
