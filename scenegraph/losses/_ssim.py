import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import safe_sqrt


def ssim_map(
    image: Float[Array, "height width channels"],
    target: Float[Array, "height width channels"],
    *,
    max_value: float = 1.0,
    size: int = 11,
    sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Float[Array, "rows columns channels"]:
    """Structural similarity about every pixel whose window lies inside the pictures.

    **Arguments:**

    - `image`, `target`: of one shape, at least `size` pixels in either direction.
    - `max_value`: the largest possible value. This and what follows are keyword only.
    - `size`, `sigma`: of the Gaussian window, in pixels.
    - `k1`, `k2`: the constants that keep the quotient stable.

    **Returns:**

    `size - 1` pixels smaller in both directions.

    **Errors:**

    `ValueError` for pictures smaller than the window.

    **Source:** Wang et al. 2004, with the constants of the published mip-NeRF code.
    """
    if min(image.shape[:2]) < size:
        raise ValueError(
            f"SSIM needs pictures of at least {size}x{size} pixels; got "
            f"{image.shape[1]}x{image.shape[0]}."
        )

    def smooth(x: Array) -> Array:
        return _blur(x, size, sigma)

    mean0, mean1 = smooth(image), smooth(target)
    variance0 = jax.nn.relu(smooth(image**2) - mean0**2)
    variance1 = jax.nn.relu(smooth(target**2) - mean1**2)
    covariance = smooth(image * target) - mean0 * mean1
    bound = safe_sqrt(variance0 * variance1)
    covariance = jnp.sign(covariance) * jnp.minimum(bound, jnp.abs(covariance))
    c1, c2 = (k1 * max_value) ** 2, (k2 * max_value) ** 2
    numerator = (2 * mean0 * mean1 + c1) * (2 * covariance + c2)
    return numerator / ((mean0**2 + mean1**2 + c1) * (variance0 + variance1 + c2))


def ssim(
    image: Float[Array, "height width channels"],
    target: Float[Array, "height width channels"],
    *,
    max_value: float = 1.0,
    size: int = 11,
    sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Scalar:
    """Mean structural similarity of two pictures.

    **Arguments:**

    - all: as in `ssim_map`.

    **Returns:**

    A number up to 1, which equal pictures reach.
    """
    return jnp.mean(
        ssim_map(image, target, max_value=max_value, size=size, sigma=sigma, k1=k1, k2=k2)
    )


def _blur(x: Array, size: int, sigma: float) -> Array:
    """Separable convolution without padding: `height width channels`.

    Where a picture is flat, SSIM is a quotient of rounding errors; this keeps the published ones:
    the window in the pictures' own precision, and along rows first.
    """
    positions = jnp.arange(size, dtype=x.dtype) - (size - 1) / 2
    window = jnp.exp(-0.5 * (positions / sigma) ** 2)
    kernel = window / jnp.sum(window)

    def along(signal: Array) -> Array:
        return jnp.convolve(signal, kernel, mode="valid", precision="highest")

    in_rows = jax.vmap(jax.vmap(along, 0, 0), 2, 2)
    in_columns = jax.vmap(jax.vmap(along, 1, 1), 2, 2)
    return in_columns(in_rows(x))
