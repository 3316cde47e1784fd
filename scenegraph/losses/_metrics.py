import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import matmul


def psnr(image: Float[Array, "height width 3"], target: Float[Array, "height width 3"]) -> Scalar:
    """Computes the peak signal-to-noise ratio of two pictures, without clipping.

    **Arguments:**

    - `image`, `target`: pictures of one shape, with values between 0 and 1.

    **Returns:**

    The ratio in decibels; infinite for equal pictures.
    """
    return mse_to_psnr(jnp.mean((image - target) ** 2))


def mse_to_psnr(mse: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Returns `-10 log10(mse)`, the PSNR in decibels of values between 0 and 1."""
    return -10 / jnp.log(10.0) * jnp.log(mse)


def psnr_to_mse(psnr: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Returns `10 ** (-psnr / 10)`."""
    return jnp.exp(-0.1 * jnp.log(10.0) * psnr)


def correct_color(
    image: Float[Array, "height width 3"], target: Float[Array, "height width 3"]
) -> Float[Array, "height width 3"]:
    """Maps a picture's colours to those of another, by the affine map that fits best.

    Photographs differ in exposure and white balance, which no scene explains.

    **Arguments:**

    - `image`, `target`: pictures of one shape.

    **Returns:**

    The picture with other colours.
    """
    # argmin_A |[x 1] A - y|^2 by the normal equations, about the means so that nothing cancels.
    x, y = image.reshape(-1, 3), target.reshape(-1, 3)
    mean, other = jnp.mean(x, axis=0), jnp.mean(y, axis=0)
    x, y = x - mean, y - other
    # A picture of one colour leaves the map open: it is drawn weakly to none.
    square = matmul(x.T, x) + 1e-6 * x.shape[0] * jnp.eye(3, dtype=x.dtype)
    corrected = matmul(x, jnp.linalg.solve(square, matmul(x.T, y))) + other
    return corrected.reshape(image.shape)


def average_error(psnr: Scalar, ssim: Scalar, lpips: Scalar) -> Scalar:
    """Computes the "average" of mip-NeRF's tables: the geometric mean of three errors."""
    # Barron et al. 2021, section 4: of 10^(-PSNR / 10), sqrt(1 - SSIM) and LPIPS.
    errors = jnp.stack([psnr_to_mse(psnr), jnp.sqrt(1 - ssim), lpips])
    return jnp.exp(jnp.mean(jnp.log(errors)))
