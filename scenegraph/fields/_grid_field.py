from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, PyTree, RandomKey, Scalar, Vector
from ..encodings import AbstractEncoding, SphericalHarmonics
from ..rays import AbstractGaussian, Medium
from ._base import AbstractAppearanceField
from ._network import Dense, dense_layers


# Bounds of the exponent of the density: below it is invisible, above as good as solid.
_THIN, _SOLID = -15.0, 12.0


class GridField(AbstractAppearanceField):
    """Density and colour from a grid of features and two small networks: fast to fit.

    The first network maps the features to density and a few further numbers; the second maps these,
    and spherical harmonics of the direction, to the colour.

    **Arguments:**

    - `encoding`: the encoding of the sample, such as `Grid`.
    - `width`: the width of both networks' hidden layer.
    - `geometry`: number of outputs of the first network that the second one reads.
    - `view_degree`: number of bands of the direction's spherical harmonics.
    - `density_bias`: the constant in the density `exp(raw + bias)`.
    - `precision`: `float32`, or `bfloat16` for the matrix products alone: the weights that are
      fitted stay `float32`.
    - `appearance`: the size of the appearance codes on which colours, but not densities, depend; 0
      for none. Rays without a code have the code zero. Keyword only argument.
    - `key`: random key of the weights. Keyword only argument.

    **Errors:**

    `ValueError` for codes of negative size, and for rays whose codes have another size.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", section 5.4. Appearance
    codes: Martin-Brualla et al. 2021, "NeRF in the Wild", section 4.1.
    """

    encoding: AbstractEncoding
    view_encoding: SphericalHarmonics
    trunk: Dense
    geometry: Dense
    head: Dense
    view: Dense
    rgb: Dense
    density_bias: float = eqx.field(static=True)
    precision: Literal["float32", "bfloat16"] = eqx.field(static=True)
    appearance: int = eqx.field(static=True, default=0)

    def __init__(
        self,
        encoding: AbstractEncoding,
        width: int = 32,
        geometry: int = 15,
        *,
        view_degree: int = 4,
        density_bias: float = 0.0,
        precision: Literal["float32", "bfloat16"] = "float32",
        appearance: int = 0,
        key: RandomKey,
    ):
        if appearance < 0:
            raise ValueError(f"`appearance` must be at least 0; got {appearance}.")
        self.encoding, self.view_encoding = encoding, SphericalHarmonics(view_degree)
        inputs = encoding.size, width, geometry, self.view_encoding.size + appearance, width
        outputs = width, geometry + 1, width, width, 3
        layers = dense_layers(tuple(zip(inputs, outputs, strict=True)), key=key)
        self.trunk, self.geometry, self.head, self.view, self.rgb = layers
        self.density_bias, self.precision = density_bias, precision
        self.appearance = appearance

    def condition(self, view: Vector) -> PyTree:
        return self.condition_on(view, None)

    def condition_on(self, view: Vector, appearance: Float[Array, " codes"] | None) -> PyTree:
        encoded = self.view_encoding(view)
        if self.appearance == 0:
            return self.view(encoded)
        code = jnp.zeros(self.appearance, encoded.dtype) if appearance is None else appearance
        if code.shape[0] != self.appearance:
            raise ValueError(
                f"the field takes appearance codes of {self.appearance} numbers; got "
                f"{code.shape[0]}: pass the same `appearance` to the field and the pictures."
            )
        return self.view(jnp.concatenate([encoded, code]))

    def medium(
        self, gaussian: AbstractGaussian, condition: PyTree, *, key: RandomKey | None = None
    ) -> Medium:
        del key
        hidden = self._hidden(gaussian)
        # rgb = sigmoid(W relu(W_h geometry + b_h + W_v harmonics + b_v) + b)
        seen = jax.nn.relu(self._apply(self.head, hidden[1:]) + condition)
        return Medium(self._density(hidden[0]), jax.nn.sigmoid(self._apply(self.rgb, seen)))

    def density(self, gaussian: AbstractGaussian) -> Scalar:
        return self._density(self._hidden(gaussian)[0])

    def _hidden(self, gaussian: AbstractGaussian) -> Float[Array, " hidden"]:
        # (raw density, geometry) = W_2 relu(W_1 encoding + b_1) + b_2
        read = jax.nn.relu(self._apply(self.trunk, self.encoding(gaussian)))
        return self._apply(self.geometry, read)

    def _apply(self, layer: Dense, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        if self.precision == "float32":
            return layer(x)
        weight, rounded = layer.weight.astype(jnp.bfloat16), x.astype(jnp.bfloat16)
        return jnp.matmul(weight, rounded, preferred_element_type=x.dtype) + layer.bias

    def _density(self, raw: Scalar) -> Scalar:
        # sigma = exp(raw + bias)
        return jnp.exp(jnp.clip(raw + self.density_bias, _THIN, _SOLID))
