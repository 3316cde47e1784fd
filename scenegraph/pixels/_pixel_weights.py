import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float
from ..images import Image


def pixel_weights(weights: list, images: list[Image]) -> Float[Array, " pixels"]:
    """Checks the weights of pixels, and joins those of all pictures."""
    if len(weights) != len(images):
        raise ValueError(f"there are {len(weights)} arrays of weights for {len(images)} pictures.")
    for one, image in zip(weights, images, strict=True):
        if np.shape(one) != (image.height, image.width):
            raise ValueError(
                f"the weights of a picture of {image.height} rows and {image.width} columns must "
                f"have this shape; got {np.shape(one)}."
            )
    flat = np.concatenate([np.asarray(one, np.float32).reshape(-1) for one in weights])
    if not (np.all(np.isfinite(flat)) and np.all(flat >= 0) and np.any(flat > 0)):
        raise ValueError("weights must be finite, not negative, and not all zero.")
    return jnp.asarray(flat)
