import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, RandomKey
from ._batches import AbstractPixelChoice
from ._views import Views


class Patches(AbstractPixelChoice):
    """Squares of neighbouring pixels, from all pictures.

    Rays that go together are searched together: a batch of patches costs meshes a small part of
    what as many single pixels do. Every picture is equally likely; pixels near its borders are in
    fewer squares.

    **Arguments:**

    - `side`: the number of pixels along a side; static. Of a narrower picture, border pixels are
      repeated.
    """

    side: int = eqx.field(static=True, default=8)

    def __check_init__(self):
        if self.side < 1:
            raise ValueError(f"`Patches.side` must be at least 1; got {self.side}.")

    def __call__(self, views: Views, count: int, key: RandomKey) -> Int[Array, " rays"]:
        patches = -(-count // self.side**2)
        frame_key, corner_key = jax.random.split(key)
        frame = jax.random.randint(frame_key, (patches,), 0, views.frames)
        size = jnp.stack([views.widths, views.heights], axis=-1)[frame][:, None]
        # Corners from 0 to size - side: a square lies in its picture.
        most = jnp.maximum(size - self.side, 0)
        corner = jax.random.randint(corner_key, (patches, 1, 2), 0, most + 1)
        down, right = jnp.divmod(jnp.arange(self.side**2), self.side)
        place = jnp.minimum(corner + jnp.stack([right, down], axis=-1), size - 1)
        inside = place[..., 1] * size[..., 0] + place[..., 0]
        return (views.starts()[frame][:, None] + inside).reshape(-1)[:count]
