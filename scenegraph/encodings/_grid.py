from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, RandomKey, Vector
from ..numerics import as_float_leaf, einsum, safe_sqrt
from ..rays import AbstractGaussian
from ..rows import map_rows
from ._lattice import count_points, simplex_weights, table_rows
from ._positional import AbstractEncoding


_INITIAL = 0.1
# A longer table is padded to a multiple of `_PARTS` rows, so that devices can have equal parts.
_LONG, _PARTS = 2**20, 2**8


class Grid(AbstractEncoding):
    """Features at the points of several lattices over the cube from -1 to 1, coarse to fine.

    A level has a row of features for each of its points, up to `capacity` rows; a finer level
    shares rows by a hash. With a large `capacity` the grid is dense, with a small one it is a hash
    grid. Levels that are finer than the sample's Gaussian fade. Outside the cube, the nearest place
    in it counts.

    **Arguments:**

    - `resolutions`: the number of cells along each axis, level by level.
    - `features`: the number of features of a point.
    - `capacity`: the largest number of rows of a level, a power of two.
    - `key`: the key of the initial features. Keyword only argument.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives"; for the fading Barron et
    al. 2023, "Zip-NeRF", equation 5.

    Example: sixteen features of a place.

    ```python
    grid = sg.encodings.Grid((16, 32, 64, 128), key=jax.random.key(0))
    place = sg.rays.Gaussian(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0]), 1e-6, 1e-6)
    features = grid(place)
    ```
    """

    table: Float[Array, "rows features"] = eqx.field(converter=as_float_leaf)
    resolutions: tuple[int, ...] = eqx.field(static=True)
    capacity: int = eqx.field(static=True)

    def __init__(
        self,
        resolutions: Sequence[int] = (16, 32, 64, 128),
        features: int = 4,
        capacity: int = 2**17,
        *,
        key: RandomKey,
    ):
        if not resolutions or min(resolutions) < 1 or features < 1:
            raise ValueError(
                f"a grid needs levels of at least one cell and one feature; got resolutions "
                f"{tuple(resolutions)} and {features} features."
            )
        if capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"`capacity` must be a power of two; got {capacity}.")
        self.resolutions, self.capacity = tuple(resolutions), capacity
        rows = sum(self._sizes())
        shape = rows if rows < _LONG else -(-rows // _PARTS) * _PARTS, features
        self.table = jax.random.uniform(key, shape, minval=-_INITIAL, maxval=_INITIAL)

    @property
    def size(self) -> int:
        return len(self.resolutions) * self.table.shape[1]

    def __call__(self, gaussian: AbstractGaussian) -> Float[Array, " features"]:
        # A row of its own: all rows of a batch are one kernel.
        one_row = jax.tree.map(lambda x: jnp.asarray(x)[None], gaussian)
        return map_rows(lambda table, row: self._features(table, row), self.table, one_row)[0]

    def _features(
        self, table: Float[Array, "rows features"], gaussian: AbstractGaussian
    ) -> Float[Array, " features"]:
        # Level l: erf(cell_l / (sqrt(8) sigma)) sum_c w_lc f_lc (Zip-NeRF, equation 5), with sigma
        # the root mean square spread of the Gaussian; a point (sigma -> 0) keeps all of it.
        weights, rows = self.corners(gaussian.mean)
        cells = 2 / jnp.asarray(self.resolutions, gaussian.mean.dtype)
        sigma = safe_sqrt(jnp.sum(gaussian.variance()) / 3)
        kept = jax.scipy.special.erf(cells / (8**0.5 * jnp.maximum(sigma, 1e-3 * cells)))
        found = table.at[rows].get(mode="clip", wrap_negative_indices=False)
        return einsum("lc,lcf->lf", weights * kept[:, None], found).reshape(-1)

    def corners(self, point: Vector) -> tuple[Float[Array, "levels 4"], Int[Array, "levels 4"]]:
        """Finds the four lattice points of each level about a place between -1 and 1.

        Returns their weights, which sum to one, and the rows of the table that hold their features.
        """
        found, start = [], 0
        for resolution, size in zip(self.resolutions, self._sizes(), strict=True):
            # Points of the lattice lie at -1 + 2 i / resolution, cells between them.
            place = (jnp.clip(point, -1, 1) + 1) * (resolution / 2)
            cell = jnp.clip(jnp.floor(place), 0, resolution - 1)
            weights, corners = simplex_weights(place - cell)
            points = cell.astype(jnp.int32) + corners
            found.append((weights, start + table_rows(points, resolution, self.capacity)))
            start += size
        weights, rows = zip(*found, strict=True)
        return jnp.stack(weights), jnp.stack(rows)

    def _sizes(self) -> list[int]:
        return [min(count_points(resolution), self.capacity) for resolution in self.resolutions]
