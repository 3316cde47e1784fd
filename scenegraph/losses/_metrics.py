import jax.numpy as jnp

from .._typing import Array, Float, Scalar


def mse_to_psnr(mse: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Converts a mean squared error of values between 0 and 1 to a PSNR.

    **Arguments:**

    - `mse`: mean squared errors; positive.

    **Returns:**

    `-10 log10(mse)`, in decibels.
    """
    return -10 / jnp.log(10.0) * jnp.log(mse)


def psnr_to_mse(psnr: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Converts a PSNR to a mean squared error of values between 0 and 1.

    **Arguments:**

    - `psnr`: peak signal-to-noise ratios, in decibels.

    **Returns:**

    `10 ** (-psnr / 10)`.
    """
    return jnp.exp(-0.1 * jnp.log(10.0) * psnr)


def psnr(image: Float[Array, "height width 3"], target: Float[Array, "height width 3"]) -> Scalar:
    """Computes the peak signal-to-noise ratio of two pictures, without clipping.

    **Arguments:**

    - `image`, `target`: pictures of one shape, with values between 0 and 1.

    **Returns:**

    The ratio in decibels; infinite for equal pictures.
    """
    return mse_to_psnr(jnp.mean((image - target) ** 2))


def average_error(psnr: Scalar, ssim: Scalar, lpips: Scalar) -> Scalar:
    """Computes the "average" of mip-NeRF's tables: the geometric mean of three errors.

    **Arguments:**

    - `psnr`, `ssim`, `lpips`: the three metrics, PSNR in decibels.

    **Returns:**

    `exp(mean(log([10 ** (-psnr / 10), sqrt(1 - ssim), lpips])))`.

    **Source:** mip-NeRF (Barron et al. 2021), section 4.
    """
    errors = jnp.stack([psnr_to_mse(psnr), jnp.sqrt(1 - ssim), lpips])
    return jnp.exp(jnp.mean(jnp.log(errors)))
