import jax.numpy as jnp

from .._typing import Array, Float, Scalar


def mse_to_psnr(mse: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Peak signal-to-noise ratio of a mean squared error, for values between 0 and 1.

    **Arguments:**

    - `mse`: positive.

    **Returns:**

    Decibels, `-10 log10(mse)`.
    """
    return -10 / jnp.log(10.0) * jnp.log(mse)


def psnr_to_mse(psnr: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """The mean squared error that has a given PSNR.

    **Arguments:**

    - `psnr`: decibels.

    **Returns:**

    `10 ** (-psnr / 10)`.
    """
    return jnp.exp(-0.1 * jnp.log(10.0) * psnr)


def psnr(image: Float[Array, "height width 3"], target: Float[Array, "height width 3"]) -> Scalar:
    """Peak signal-to-noise ratio of two pictures; values are not clipped.

    **Arguments:**

    - `image`, `target`: colours between 0 and 1, of one shape.

    **Returns:**

    Decibels; infinite for equal pictures.
    """
    return mse_to_psnr(jnp.mean((image - target) ** 2))


def average_error(psnr: Scalar, ssim: Scalar, lpips: Scalar) -> Scalar:
    """The paper's "average": the geometric mean of three errors.

    **Arguments:**

    - `psnr`: decibels.
    - `ssim`, `lpips`: as they are.

    **Returns:**

    `exp(mean(log([10 ** (-psnr / 10), sqrt(1 - ssim), lpips])))`.

    **Source:** mip-NeRF (Barron et al. 2021), section 4.
    """
    errors = jnp.stack([psnr_to_mse(psnr), jnp.sqrt(1 - ssim), lpips])
    return jnp.exp(jnp.mean(jnp.log(errors)))
