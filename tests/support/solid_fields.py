"""Fields whose surface is known: solid balls, with an edge some cells wide."""

import equinox as eqx
import jax
import jax.numpy as jnp

import scenegraph as sg
from scenegraph.numerics import as_float_leaf


class Balls(sg.fields.AbstractField):
    """Solid balls; the colour is that of the place, `(x + 1) / 2`, or that of the direction."""

    centers: jax.Array = eqx.field(converter=as_float_leaf)
    radii: jax.Array = eqx.field(converter=as_float_leaf)
    extinction: jax.Array = eqx.field(converter=as_float_leaf, default=1000.0)
    edge: jax.Array = eqx.field(converter=as_float_leaf, default=0.02)
    by_direction: bool = eqx.field(static=True, default=False)

    def __call__(self, gaussian, view, *, key=None):
        del key
        place = view if self.by_direction else gaussian.mean
        return sg.rays.Medium(self.density(gaussian), jnp.clip((place + 1) / 2, 0, 1))

    def density(self, gaussian):
        inside = self.radii - jnp.linalg.norm(gaussian.mean - self.centers, axis=1)
        return self.extinction * jax.nn.sigmoid(jnp.max(inside) / self.edge)


def density_radius(radius, extinction, edge, level, width):
    """The distance from a ball's centre at which a cell of some width has the opacity `level`."""
    # extinction * sigmoid((radius - r) / edge) = -log(1 - level) / width
    share = -jnp.log(1 - level) / width / extinction
    return float(radius - edge * jnp.log(share / (1 - share)))
