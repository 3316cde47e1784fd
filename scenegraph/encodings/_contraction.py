import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Matrix3, Scalar, Vector
from ..numerics import AbstractModule, einsum
from ..rays import AbstractGaussian, FullGaussian, Gaussian


class Contraction(AbstractModule):
    """All of space in a ball: its inner half is the unit ball, unbent, its shell what is beyond.

    With `radius=2`, as published, `x` is kept up to `|x| = 1`, and becomes `(2 - 1 / |x|) x / |x|`
    beyond. Equal steps far out are then about equal steps in disparity.

    **Arguments:**

    - `radius`: the radius of the ball that holds all of space; 1 fits the cube of a `Grid`; static.

    **Source:** Barron et al. 2022, "Mip-NeRF 360", equation 10; for Gaussians section 2.

    Example: a place a hundred units away.

    ```python
    bent = sg.encodings.Contraction().point(jnp.array([100.0, 0.0, 0.0]))
    assert abs(float(bent[0]) - 1.99) < 1e-5
    ```
    """

    radius: float = eqx.field(static=True, default=2.0)

    def __check_init__(self):
        if not self.radius > 0:
            raise ValueError(f"`radius` must be positive; got {self.radius}.")

    def point(self, place: Vector) -> Vector:
        """Contracts a place.

        **Arguments:**

        - `place`: the place, `3`.

        **Returns:**

        The place in the ball, `3`.
        """
        return self._factors(place)[0] * place

    def linear(self, place: Vector) -> Matrix3:
        """Computes the derivative of `point`, a symmetric matrix."""
        # J = a I + b x x^T
        a, b = self._factors(place)
        return a * jnp.eye(3, dtype=place.dtype) + b * jnp.outer(place, place)

    def direction(self, place: Vector, direction: Vector) -> Vector:
        """Contracts a direction, the change of a place per unit of anything, at that place."""
        a, b = self._factors(place)
        # J d = a d + b (x . d) x
        return a * direction + b * jnp.sum(place * direction) * place

    def gaussian(self, gaussian: AbstractGaussian) -> FullGaussian:
        """Contracts a Gaussian: mean `f(m)`, covariance `J C J^T` with the derivative `J` there."""
        x, d = gaussian.mean, gaussian.direction
        # To first order, f(x + u) = f(x) + J u.
        a, b = self._factors(x)
        direction = self.direction(x, d)
        if not isinstance(gaussian, Gaussian):
            # J is symmetric, so that J C J^T is J C J.
            matrix = self.linear(x)
            spread = einsum("ij,jk,kl->il", matrix, gaussian.covariance(), matrix)
            return FullGaussian(a * x, direction, spread)
        # C = k d d^T + v I with k = along - v / |d|^2, so that
        # J C J^T = k (J d)(J d)^T + v J^2, and J^2 = a^2 I + (2 a b + b^2 |x|^2) x x^T.
        across = gaussian.across
        k = gaussian.along - across / jnp.maximum(1e-10, jnp.sum(d * d))
        c = 2 * a * b + b**2 * jnp.sum(x * x)
        round_part = a**2 * jnp.eye(3, dtype=x.dtype) + c * jnp.outer(x, x)
        spread = k * jnp.outer(direction, direction) + across * round_part
        return FullGaussian(a * x, direction, spread)

    def _factors(self, place: Vector) -> tuple[Scalar, Scalar]:
        """Returns `a` and `b` of `f(x) = a x` and its derivative `a I + b x x^T`."""
        # a = s (2 - 1 / r) / r and b = a' / r = s (2 / r^4 - 2 / r^3), with r = max(1, |x|); at
        # r = 1 these are s and 0.
        r = jnp.sqrt(jnp.maximum(1.0, jnp.sum(place * place)))
        s = self.radius / 2
        return s * (2 - 1 / r) / r, s * 2 * (1 - r) / r**4


def contract_length(length: Float[Array, "*places"]) -> Float[Array, "*places"]:
    """Contracts signed lengths as `Contraction` does along an axis, to between -2 and 2."""
    # Mip-NeRF 360, equation 10, along one axis: f(x) = sign(x) (2 - 1 / |x|) for |x| > 1, else x.
    far = jnp.maximum(1.0, jnp.abs(length))
    return jnp.where(jnp.abs(length) < 1, length, jnp.sign(length) * (2 - 1 / far))


def expand_length(length: Float[Array, "*places"]) -> Float[Array, "*places"]:
    """Inverts `contract_length`; what is at the end, or beyond it, is very far away."""
    # With |y| = 2 - 1 / |x|: |x| = 1 / (2 - |y|).
    left = jnp.maximum(1e-6, 2 - jnp.maximum(1.0, jnp.abs(length)))
    return jnp.where(jnp.abs(length) < 1, length, jnp.sign(length) / left)
