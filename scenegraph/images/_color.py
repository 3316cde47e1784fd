import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from PIL import ImageColor

from .._typing import Array, ArrayLike, Float
from ..numerics import as_float_leaf


def as_color(value: Any) -> Any:
    """Turns what a user types for a colour into a leaf of linear light.

    Names and hexadecimal numbers are sRGB, as everywhere, and are decoded: `"gray"` is 0.216 in
    linear light. Numbers are taken as they are. In a scene without lights, whose numbers are those
    of the picture, write `linear_to_srgb(as_color("gray"))` for a grey that is the same there.

    **Arguments:**

    - `value`: red, green and blue; or a colour's name in CSS, such as `"red"`; or a hexadecimal
      number, such as `"#cc3311"`.

    **Returns:**

    A floating array, `3` for names; numbers become a leaf as by `as_float_leaf`.

    **Errors:**

    `ValueError` for an unknown name, and for a colour with an opacity.
    """
    return decoded(_numbers_of(value)) if isinstance(value, str) else as_float_leaf(value)


# Numbers that are looked up together.
_BLOCK = 2**20

# The arrays that were decoded from sRGB; they are not kept alive by this.
_decoded: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()


def decoded(srgb: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Decodes sRGB numbers to linear light, and remembers that the result is that."""
    linear = srgb_to_linear(srgb)
    if not isinstance(linear, Tracer) and bool(jnp.any(jnp.abs(linear - srgb) > 0.02)):
        _decoded[id(linear)] = linear
    return linear


def decoded_bytes(srgb: np.ndarray) -> Array:
    """Decodes sRGB numbers of 8 bits to linear light, as `decoded` does."""
    linear = by_table(srgb, srgb_to_linear(jnp.arange(256, dtype=float) / 255))
    if np.any((srgb > 20) & (srgb < 245)):
        _decoded[id(linear)] = linear
    return linear


def by_table(numbers: np.ndarray, table: ArrayLike) -> Array:
    """Returns a table's entry for each number of 8 bits; a row of it has one for each channel.

    There is no other array as large as the result.
    """
    rows = np.asarray(table, jax.dtypes.canonicalize_dtype(float))
    # JAX takes over what begins at a multiple of 64 bytes, and copies the rest.
    space = np.empty(numbers.size * rows.itemsize + 64, np.uint8)
    start = -space.ctypes.data % 64
    found = space[start : start + numbers.size * rows.itemsize].view(rows.dtype)
    found = found.reshape(numbers.shape)
    step = max(1, _BLOCK // max(1, numbers[:1].size))
    for at in range(0, len(numbers), step):
        own = numbers[at : at + step]
        if rows.ndim == 1:
            found[at : at + step] = rows[own]
        else:
            found[at : at + step] = rows[own, np.arange(rows.shape[1])]
    return jax.device_put(found)


def was_decoded(leaf: Any) -> bool:
    """Returns true for an array that was decoded from other sRGB numbers."""
    return _decoded.get(id(leaf)) is leaf


def _numbers_of(name: str) -> Float[Array, "3"]:
    """Returns the sRGB numbers of a name or a hexadecimal number."""
    try:
        numbers = ImageColor.getrgb(name)
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise ValueError(
            f"a colour is red, green and blue, a name such as 'red', or a hexadecimal number such "
            f"as '#cc3311'; got {name!r}"
        )
    return jnp.asarray(numbers, dtype=float) / 255


def linear_to_srgb(linear: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Encodes linear light as sRGB.

    **Arguments:**

    - `linear`: linear light, any shape; values above 1 are encoded by the same curve.

    **Returns:**

    The sRGB numbers, of the same shape.

    **Source:** IEC 61966-2-1.
    """
    # 12.92 L up to 0.0031308, above it 1.055 L^(1/2.4) - 0.055
    epsilon = jnp.finfo(jnp.float32).eps
    # In whole numbers: 12.92 = 323 / 25, 1.055 = 211 / 200 and 1 / 2.4 = 5 / 12.
    low = 323 / 25 * linear
    high = (211 * jnp.maximum(epsilon, linear) ** (5 / 12) - 11) / 200
    return jnp.where(linear <= 0.0031308, low, high)


def srgb_to_linear(srgb: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Decodes sRGB numbers to linear light.

    **Arguments:**

    - `srgb`: sRGB numbers, any shape.

    **Returns:**

    Linear light, of the same shape.

    **Source:** IEC 61966-2-1.
    """
    # V / 12.92 up to 0.04045, above it ((V + 0.055) / 1.055)^2.4
    epsilon = jnp.finfo(jnp.float32).eps
    low = 25 / 323 * srgb
    high = jnp.maximum(epsilon, (200 * srgb + 11) / 211) ** (12 / 5)
    return jnp.where(srgb <= 0.04045, low, high)
