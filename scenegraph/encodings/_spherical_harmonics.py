import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Vector
from ..numerics import AbstractModule, safe_normalise


class SphericalHarmonics(AbstractModule):
    """Real spherical harmonics of a direction: smooth features for view-dependent colour.

    **Arguments:**

    - `degree`: the number of bands, 1 to 4; there are `degree ** 2` features.

    **Source:** Sloan 2008, "Stupid spherical harmonics (SH) tricks", appendix A2.
    """

    degree: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        if not 1 <= self.degree <= 4:
            raise ValueError(f"`degree` must be between 1 and 4; got {self.degree}.")

    @property
    def size(self) -> int:
        """The number of features."""
        return self.degree**2

    def __call__(self, direction: Vector) -> Float[Array, " features"]:
        """Encodes one direction.

        **Arguments:**

        - `direction`: the direction, of any length but zero, `3`.

        **Returns:**

        The features, `degree**2` of them, band by band, each from order `-band` to `band`;
        orthonormal over the sphere.
        """
        x, y, z = safe_normalise(direction)
        xx, yy, zz = x * x, y * y, z * z
        one = jnp.ones_like(x)
        # Factors of the polynomials, band by band: 1/2 sqrt(1/pi); sqrt(3/(4 pi)); 1/2 sqrt(15/pi),
        # 1/4 sqrt(5/pi), 1/4 sqrt(15/pi); 1/4 sqrt(35/(2 pi)), 1/2 sqrt(105/pi), 1/4 sqrt(21/(2
        # pi)), 1/4 sqrt(7/pi), 1/4 sqrt(105/pi).
        # All have the sign (-1)^m of their order m.
        bands = [
            [0.28209479177387814 * one],
            [-0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x],
            [
                1.0925484305920792 * x * y,
                -1.0925484305920792 * y * z,
                0.31539156525252005 * (2 * zz - xx - yy),
                -1.0925484305920792 * x * z,
                0.5462742152960396 * (xx - yy),
            ],
            [
                -0.5900435899266435 * y * (3 * xx - yy),
                2.890611442640554 * x * y * z,
                -0.4570457994644658 * y * (4 * zz - xx - yy),
                0.3731763325901154 * z * (2 * zz - 3 * xx - 3 * yy),
                -0.4570457994644658 * x * (4 * zz - xx - yy),
                1.445305721320277 * z * (xx - yy),
                -0.5900435899266435 * x * (xx - 3 * yy),
            ],
        ]
        return jnp.stack([x for band in bands[: self.degree] for x in band])
