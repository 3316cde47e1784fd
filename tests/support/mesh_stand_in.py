"""A triangle mesh that holds its arrays, and its colours; neither can be rendered."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from scenegraph.shaders import AbstractShader
from scenegraph.shapes import AbstractShape


class TriangleMesh(AbstractShape):
    vertices: Any = eqx.field(converter=jnp.asarray)
    faces: Any = eqx.field(converter=jnp.asarray)
    normals: Any = None
    uv: Any = None
    colors: Any = None
    smooth: bool = eqx.field(static=True, default=True)

    is_convex: ClassVar[bool] = False
    has_uv: ClassVar[bool] = True

    def parts(self, ray):
        raise NotImplementedError

    def coverage(self, ray):
        raise NotImplementedError


class VertexColor(AbstractShader):
    def __call__(self, hit, view, lights):
        raise NotImplementedError
