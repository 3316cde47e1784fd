import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import with_value


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
    """Computes the mean structural similarity of two pictures.

    **Arguments:**

    - `image`, `target`: pictures of one shape, at least `size` pixels in height and width.
    - `max_value`: the largest possible value. This and the following are keyword only arguments.
    - `size`, `sigma`: the size and the standard deviation of the Gaussian window, in pixels.
    - `k1`, `k2`: the constants that keep the quotient stable.

    **Returns:**

    A number of at most 1, its value for equal pictures.

    **Errors:**

    `ValueError` for pictures smaller than the window.

    **Source:** Wang et al. 2004, with the constants of the published mip-NeRF code.
    """
    constants = (k1 * max_value) ** 2, (k2 * max_value) ** 2
    return jnp.mean(ssim_map(image, target, size, sigma, *constants))


def ssim_map(
    image: Float[Array, "height width channels"],
    target: Float[Array, "height width channels"],
    size: int = 11,
    sigma: float = 1.5,
    c1: float = 0.01**2,
    c2: float = 0.03**2,
) -> Float[Array, "rows columns channels"]:
    """Computes the structural similarity about every pixel whose window lies in the pictures."""
    height, width = image.shape[:2]
    if min(height, width) < size:
        raise ValueError(
            f"SSIM needs pictures of at least {size}x{size} pixels; got {width}x{height}."
        )

    def smooth(x: Array) -> Array:
        return _smooth(x, size, sigma)

    mean0, mean1 = smooth(image), smooth(target)
    # var(x) = E[x^2] - E[x]^2 >= 0 and |cov(x, y)| <= sqrt(var(x) var(y)), in spite of rounding.
    # Derivatives are those without these bounds.
    raw0 = smooth(image**2) - mean0**2
    raw1 = smooth(target**2) - mean1**2
    variance0 = with_value(raw0, jax.nn.relu(raw0))
    variance1 = with_value(raw1, jax.nn.relu(raw1))
    raw = smooth(image * target) - mean0 * mean1
    bound = jnp.sqrt(jax.lax.stop_gradient(variance0 * variance1))
    covariance = with_value(raw, jnp.sign(raw) * jnp.minimum(bound, jnp.abs(raw)))
    # Wang et al., equation 13.
    numerator = (2 * mean0 * mean1 + c1) * (2 * covariance + c2)
    return numerator / ((mean0**2 + mean1**2 + c1) * (variance0 + variance1 + c2))


def _smooth(x: Array, size: int, sigma: float) -> Array:
    """Convolves `height width channels` with a normalised Gaussian window, without padding."""
    # Where a picture is flat, SSIM is a quotient of rounding errors; this keeps the published ones:
    # the window in the pictures' own precision, and along rows first.
    offsets = jnp.arange(size, dtype=x.dtype) - (size - 1) / 2
    window = jnp.exp(-0.5 * (offsets / sigma) ** 2)
    kernel = window / jnp.sum(window)

    def along(signal: Array) -> Array:
        return jnp.convolve(signal, kernel, mode="valid", precision="highest")

    in_rows = jax.vmap(jax.vmap(along, 0, 0), 2, 2)
    in_columns = jax.vmap(jax.vmap(along, 1, 1), 2, 2)
    return in_columns(in_rows(x))
