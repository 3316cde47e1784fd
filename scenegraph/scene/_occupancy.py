import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import AbstractModule, as_float_leaf


class Occupancy(AbstractModule):
    """The density of a field, cell by cell of its bounds, so that empty space is skipped.

    It is state and takes no gradient: `refresh_occupancy` keeps it up to date.

    **Arguments:**

    - `thickness`: the optical depth of each cell along its edge, as last sampled; negative in cells
      that are known to stay empty.
    - `threshold`: the optical depth below which a cell is skipped; static.
    - `decay`: the factor of what is known of a cell each time that it is sampled anew, unless it
      turns out thicker; static.
    - `part`: one in so many of the cells is sampled anew at a time; static.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix C.
    """

    thickness: Float[Array, "x y z"] = eqx.field(converter=as_float_leaf)
    threshold: float = eqx.field(static=True, default=0.03)
    decay: float = eqx.field(static=True, default=0.9)
    part: int = eqx.field(static=True, default=8)

    @staticmethod
    def everywhere(
        resolution: int = 64, threshold: float = 0.03, decay: float = 0.9, part: int = 8
    ) -> "Occupancy":
        """Makes an occupancy that skips nothing.

        **Arguments:**

        - `resolution`: the number of cells along each axis.
        - `threshold`: the optical depth below which a cell is skipped.
        - `decay`: the factor of what is known of a cell when it is sampled anew.
        - `part`: one in so many cells is sampled at a time.

        **Returns:**

        The occupancy.
        """
        return Occupancy(jnp.full((resolution,) * 3, 10 * threshold), threshold, decay, part)

    def without(self, empty: Bool[Array, "x y z"]) -> "Occupancy":
        """Marks cells that stay empty, where `empty` is true."""
        return Occupancy(
            jnp.where(empty, -1.0, self.thickness), self.threshold, self.decay, self.part
        )

    def at(self, place: Vector) -> Bool[Array, ""]:
        """Returns false at places, 0 to 1 along each axis of the bounds, whose cell is skipped."""
        return self.thickness_at(place) > self.threshold

    def thickness_at(self, place: Vector) -> Scalar:
        """Returns the optical depth along the edge of the cell at a place from 0 to 1.

        It is negative where the cell is known to stay empty.
        """
        size = jnp.asarray(self.thickness.shape)
        # Cell (x n_y + y) n_z + z of the flattened grid.
        x, y, z = jnp.clip((place * size).astype(jnp.int32), 0, size - 1)
        _, ny, nz = self.thickness.shape
        return self.thickness.reshape(-1)[(x * ny + y) * nz + z]
