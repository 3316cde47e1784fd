import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Vector
from ..numerics import AbstractModule, as_float_leaf


class Occupancy(AbstractModule):
    """The density of a field, cell by cell of its bounds, so that empty space is skipped.

    It is state and takes no gradient: `refresh_occupancy` keeps it up to date.

    **Arguments:**

    - `thickness`: the optical depth of each cell along its edge, as last sampled; negative in cells
      that are known to stay empty.
    - `threshold`: the optical depth below which a cell is skipped; static.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix C.
    """

    thickness: Float[Array, "x y z"] = eqx.field(converter=as_float_leaf)
    threshold: float = eqx.field(static=True, default=0.03)

    @staticmethod
    def everywhere(resolution: int = 64, threshold: float = 0.03) -> "Occupancy":
        """Makes an occupancy that skips nothing.

        **Arguments:**

        - `resolution`: the number of cells along each axis.
        - `threshold`: the optical depth below which a cell is skipped.

        **Returns:**

        The occupancy.
        """
        return Occupancy(jnp.full((resolution,) * 3, 10 * threshold), threshold)

    def without(self, empty: Bool[Array, "x y z"]) -> "Occupancy":
        """Marks cells that stay empty.

        **Arguments:**

        - `empty`: true for cells to be skipped from now on.

        **Returns:**

        The occupancy.
        """
        return Occupancy(jnp.where(empty, -1.0, self.thickness), self.threshold)

    def at(self, place: Vector) -> Bool[Array, ""]:
        """Returns false at places whose cell is skipped.

        **Arguments:**

        - `place`: the position in the bounds, from 0 to 1 along each axis.

        **Returns:**

        A boolean.
        """
        size = jnp.asarray(self.thickness.shape)
        x, y, z = jnp.clip((place * size).astype(jnp.int32), 0, size - 1)
        _, ny, nz = self.thickness.shape
        return self.thickness.reshape(-1)[(x * ny + y) * nz + z] > self.threshold
