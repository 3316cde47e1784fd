"""Products of matrices in full precision: by default, some devices round what they multiply."""

from functools import partial

import jax
import jax.numpy as jnp


# GPUs keep 10 bits of a number's fraction (TF32), TPUs 7 (bfloat16): enough for a network's layers,
# which are products of JAX's own precision, and far too few for a place in space or a loss.
matmul = partial(jnp.matmul, precision="highest")
einsum = partial(jnp.einsum, precision="highest")
# Decorates functions that call another library's products.
in_full_precision = jax.default_matmul_precision("highest")
