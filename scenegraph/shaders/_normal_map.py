from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf, dot, require_finite, safe_normalise, unfreeze
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._constant import as_shader


class NormalMap(AbstractModule):
    """Bumps too small for the shape: normals from a texture, in the surface's own frame.

    A colour `c` stands for the normal `2 c - 1`, as in glTF: red along the tangent, in which `u`
    grows, green at a right angle to it, to the side where `v` grows, and blue along the surface's
    normal. So (0.5, 0.5, 1) leaves the normal as it is. Behind, the same bumps are seen from
    inside. Tangents come from the derivatives of point and `uv` by the pixel; they are those of the
    triangle where a mesh is hit. Where `uv` does not change, there is no tangent, and no bump.

    **Arguments:**

    - `texture`: the shader of the normals. The texels of an `ImageTexture` are the numbers of the
      file (`ImageTexture.load(path, linear=True)`).
    - `scale`: a factor of the parts across the surface's normal; 0 for none.

    **Source:** Khronos, glTF 2.0, section 3.9.3 and appendix B.
    """

    texture: AbstractShader = eqx.field(converter=as_shader)
    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    def __check_init__(self):
        require_finite(self, "scale")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Vector:
        """Computes the normal with its bumps, on the side of `hit.normal`, which it replaces."""
        x, y, z = 2 * self.texture(hit, view, lights) - 1
        tangent, bitangent = _tangents(hit)
        # The bumped normal of the outer side, turned to the eye as the surface's own normal is.
        across = hit.side * self.scale * (x * tangent + y * bitangent)
        return safe_normalise(across + z * hit.normal)


def as_normal_map(value: Any) -> Any:
    """Converts the shader of a normal map; `None` stays."""
    kept = value is None or isinstance(unfreeze(value), NormalMap)
    return value if kept else NormalMap(value)


def _tangents(hit: Hit) -> tuple[Vector, Vector]:
    """Returns unit vectors at right angles to the normal, along `u` and towards growing `v`."""
    (u_x, v_x), (u_y, v_y) = hit.duv
    p_x, p_y = hit.d_point
    # P_x = P_u u_x + P_v v_x, and so for y: P_u = (v_y P_x - v_x P_y) / det,
    # P_v = (u_x P_y - u_y P_x) / det. Of det, only the sign matters.
    sign = jnp.where(u_x * v_y < u_y * v_x, -1, 1)
    along, up = sign * (v_y * p_x - v_x * p_y), sign * (u_x * p_y - u_y * p_x)
    tangent = safe_normalise(along - dot(along, hit.normal) * hit.normal)
    side = jnp.cross(hit.normal, tangent)
    # glTF's tangent.w: whether uv is mirrored.
    return tangent, jnp.where(dot(side, up) < 0, -side, side)
