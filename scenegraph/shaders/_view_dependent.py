import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Color, Vector
from ..encodings import SphericalHarmonics
from ..images import linear_to_srgb, srgb_to_linear
from ..numerics import as_float_leaf, matmul, unfreeze
from ..rays import Hit, Irradiance
from ._albedo import AbstractAlbedoShader, albedo_of
from ._base import AbstractShader
from ._constant import as_shader
from ._image_texture import ImageTexture, PreparedTexture


def _as_terms(value: Any) -> Any:
    """Makes a texture over the unit square of coefficients in an array."""
    if isinstance(value, ImageTexture):
        return value
    array = as_float_leaf(value)
    if array.ndim != 4 or array.shape[3] != 3:
        raise TypeError(
            f"`ViewDependent.terms` must be `height width harmonics 3`; got {array.shape}."
        )
    flat = array.reshape(*array.shape[:2], 3 * array.shape[2])
    return ImageTexture(flat, corner=(0.0, 0.0), probes=1)


class ViewDependent(AbstractAlbedoShader):
    """A colour that changes with the direction from which it is seen: gloss without a lamp.

    It is a base colour, to which spherical harmonics of the ray's direction are added, times a
    texture of their coefficients. The direction is that in the surface's own frame: what is turned
    takes its gloss along. Negative sums are black.

    **Arguments:**

    - `base`: the base, a shader or a colour.
    - `terms`: the coefficients of the harmonics of 1 to 4 bands (see
      `encodings.SphericalHarmonics`), `height width bands**2 3`, with the top row first, over the
      unit square of the surface's coordinates; or an `ImageTexture` of `3 * bands**2` channels.
      They may be much coarser than the base.
    - `encoded`: if true, the base is linear light, and the terms are added to its sRGB numbers;
      else both are numbers of one kind. Static.

    **Errors:**

    `TypeError` for another number of harmonics or channels.

    **Source:** Yu et al. 2021, "PlenOctrees for Real-time Rendering of Neural Radiance Fields".

    Example: a grey that is lighter from above.

    ```python
    terms = jnp.zeros((1, 1, 4, 3)).at[..., 2, :].set(-0.4)
    paper = sg.Surface(sg.Rectangle(), sg.shaders.ViewDependent([0.5, 0.5, 0.5], terms))
    ```
    """

    base: AbstractShader = eqx.field(converter=as_shader)
    terms: ImageTexture | PreparedTexture = eqx.field(converter=_as_terms)
    encoded: bool = eqx.field(static=True, default=False)
    needs_own_view: ClassVar[bool] = True
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        channels = unfreeze(self.terms.texels).shape[-1]
        if channels not in (3, 12, 27, 48):
            raise TypeError(
                "`ViewDependent.terms` must have 1, 4, 9 or 16 harmonics of three channels; got "
                f"{channels} channels."
            )

    @property
    def bands(self) -> int:
        """The number of bands of the harmonics."""
        return math.isqrt(unfreeze(self.terms.texels).shape[-1] // 3)

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        direction = view if hit.own_view is None else hit.own_view
        # base + sum_k Y_k(direction) terms_k
        harmonics = SphericalHarmonics(self.bands)(direction)
        base = self.base(hit, view, lights)
        base = linear_to_srgb(base) if self.encoded else base
        color = jnp.maximum(base + matmul(harmonics, self.terms.average(hit).reshape(-1, 3)), 0)
        return srgb_to_linear(color) if self.encoded else color

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.base, hit, view)
