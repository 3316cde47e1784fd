import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Int
from ..numerics import AbstractModule, as_float_leaf


class Hit(AbstractModule):
    """The intersection of a cone with a surface, and the part of the pixel that it covers.

    **Arguments:**

    - `t`: the ray parameter of the intersection.
    - `point`, `normal`: the intersection and the surface's unit normal there.
    - `uv`: surface coordinates.
    - `duv`: derivatives of `uv` by the pixel's x (first row) and y (second row).
    - `coverage`: the part of the pixel that the surface covers, between 0 and 1.
    - `d_point`: derivatives of the point by the pixel's x (first row) and y (second row): the sides
      of the parallelogram that the pixel covers on the surface.
    - `place`, `d_place`: the point and its derivatives in the shape's own frame, which solid
      patterns use; by default `point` and `d_point`.
    - `color`: the colour that vertices give the surface; `None` for white.
    - `side`: 1 where the eye sees the outer side, which the shape's own normal looks away from, and
      -1 where it sees the inner one; by default 1.
    - `own_view`: the ray's direction, of length one, in the shape's own frame, for shaders that ask
      for it; else `None`.
    - `surface`: the number of the surface, which `sg.surface_paths` names; -1 for a miss. Like all
      that follows, `cast_rays` gives it, and it is `None` elsewhere.
    - `face`: the row of the triangle in the `faces` of a `TriangleMesh`; -1 on other shapes.
    - `barycentric`: the shares of that row's three vertices in the point, in their order; they add
      up to one. Zero on other shapes.
    """

    t: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    point: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    normal: Float[Array, "*rays 3"] = eqx.field(converter=as_float_leaf)
    uv: Float[Array, "*rays 2"] = eqx.field(converter=as_float_leaf)
    duv: Float[Array, "*rays 2 2"] = eqx.field(converter=as_float_leaf)
    coverage: Float[Array, "*rays"] = eqx.field(converter=as_float_leaf)
    d_point: Float[Array, "*rays 2 3"]
    place: Float[Array, "*rays 3"]
    d_place: Float[Array, "*rays 2 3"]
    color: Float[Array, "*rays 3"] | None
    side: Float[Array, "*rays"]
    own_view: Float[Array, "*rays 3"] | None
    surface: Int[Array, "*rays"] | None
    face: Int[Array, "*rays"] | None
    barycentric: Float[Array, "*rays 3"] | None

    def __init__(
        self,
        t,
        point,
        normal,
        uv,
        duv,
        coverage,
        *,
        d_point=None,
        place=None,
        d_place=None,
        color=None,
        side=None,
        own_view=None,
        surface=None,
        face=None,
        barycentric=None,
    ):
        self.t, self.point, self.normal = t, as_float_leaf(point), normal
        self.uv, self.duv, self.coverage = uv, duv, coverage
        still = jnp.zeros((*self.point.shape[:-1], 2, 3), self.point.dtype)
        self.d_point = still if d_point is None else as_float_leaf(d_point)
        self.place = self.point if place is None else as_float_leaf(place)
        self.d_place = self.d_point if d_place is None else as_float_leaf(d_place)
        self.color = None if color is None else as_float_leaf(color)
        self.side = jnp.ones_like(self.point[..., 0]) if side is None else as_float_leaf(side)
        self.own_view = None if own_view is None else as_float_leaf(own_view)
        self.surface, self.face, self.barycentric = surface, face, barycentric
