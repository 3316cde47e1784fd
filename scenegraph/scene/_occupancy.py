import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Vector
from ..numerics import AbstractModule, as_float_leaf


class Occupancy(AbstractModule):
    """How dense a field is, cell by cell of its bounds: what is next to empty need not be asked.

    It is state, not something to optimise: `refresh_occupancy` keeps it up to date.

    **Arguments:**

    - `thickness`: the optical depth of each cell along its edge, as last seen; negative where there
      never is anything.
    - `threshold`: cells that are thinner than this are skipped.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix C.
    """

    thickness: Float[Array, "x y z"] = eqx.field(converter=as_float_leaf)
    threshold: float = eqx.field(static=True, default=0.03)

    @staticmethod
    def everywhere(resolution: int = 64, threshold: float = 0.03) -> "Occupancy":
        """One that does not know anything yet, so that nothing is skipped.

        **Arguments:**

        - `resolution`: cells along each axis.
        - `threshold`: as in `Occupancy`.

        **Returns:**

        The occupancy.
        """
        return Occupancy(jnp.full((resolution,) * 3, 10 * threshold), threshold)

    def without(self, empty: Bool[Array, "x y z"]) -> "Occupancy":
        """One that also knows where there never is anything.

        **Arguments:**

        - `empty`: whether a cell is empty.

        **Returns:**

        The occupancy.
        """
        return Occupancy(jnp.where(empty, -1.0, self.thickness), self.threshold)

    def at(self, place: Vector) -> Bool[Array, ""]:
        """Whether there may be anything at a place.

        **Arguments:**

        - `place`: in the bounds, from 0 to 1 along each axis.

        **Returns:**

        False where the field need not be asked.
        """
        size = jnp.asarray(self.thickness.shape)
        x, y, z = jnp.clip((place * size).astype(jnp.int32), 0, size - 1)
        _, ny, nz = self.thickness.shape
        return self.thickness.reshape(-1)[(x * ny + y) * nz + z] > self.threshold
