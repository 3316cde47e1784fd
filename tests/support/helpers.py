"""What several test modules share."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.test_util import check_jvp, check_vjp

import scenegraph as sg
from scenegraph.integrators import OccupancyMarch
from scenegraph.rays import AbstractBeam, AbstractGaussian, Ray


GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@functools.cache
def golden(name: str) -> dict[str, np.ndarray]:
    """All arrays of `tests/golden/<name>.npz`."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def golden_rays(data: dict[str, np.ndarray], prefix: str = "rays.") -> Ray:
    """The rays of a golden file, with the published scalar radius."""
    vectors = [data[prefix + name] for name in ("origins", "directions", "viewdirs")]
    scalars = [data[prefix + name][:, 0] for name in ("radii", "near", "far")]
    return jax.jit(jax.vmap(Ray.from_radius))(*vectors, *scalars)


def sections(beam: AbstractBeam, rays: Ray, t0, t1) -> AbstractGaussian:
    """The Gaussians of many intervals of many rays; `t0` and `t1` are `rays samples`."""
    per_ray = jax.vmap(beam, (None, 0, 0))
    return jax.jit(jax.vmap(per_ray))(rays, jnp.asarray(t0), jnp.asarray(t1))


def covariances(gaussians: AbstractGaussian, kind: str) -> jax.Array:
    """Of an array of Gaussians `rays samples`: variances (`diag`) or matrices (`full`)."""
    method = {"diag": lambda g: g.variance(), "full": lambda g: g.covariance()}[kind]
    return jax.jit(jax.vmap(jax.vmap(method)))(gaussians)


def assert_close(actual, expected, relative: float = 1e-5, absolute: float = 0.0) -> None:
    """Equal shapes, and every entry within `relative` of the largest one, or `absolute`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    bound = absolute + relative * np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


def assert_finite_gradients(function, *arguments) -> None:
    """Value and both kinds of derivative are finite (the arguments are arrays or Modules)."""

    @jax.jit
    def derivatives(*arguments):
        value, pull = jax.vjp(function, *arguments)
        _, pushed = jax.jvp(function, arguments, jax.tree.map(jnp.ones_like, arguments))
        return value, pushed, pull(jax.tree.map(jnp.ones_like, value))

    for leaf in jax.tree.leaves(derivatives(*arguments)):
        assert np.all(np.isfinite(leaf)), leaf


def assert_gradients(function, *arguments) -> None:
    """Both kinds of derivative agree with finite differences; use it with the `x64` fixture."""
    assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(arguments))

    @jax.jit
    def derivatives(arguments, tangents, cotangents):
        value, pull = jax.vjp(function, *arguments)
        return jax.jvp(function, arguments, tangents), (value, pull(cotangents))

    # Two programs in all: the function, and both of its derivatives.
    values = jax.jit(lambda *arguments: function(*arguments))
    zeros = jax.tree.map(np.zeros_like, (arguments, values(*arguments)))

    def pullback(*arguments):
        found = lambda cotangents: derivatives(arguments, zeros[0], cotangents)[1]
        return found(zeros[1])[0], lambda cotangents: found(cotangents)[1]

    bounds = 1e-6, 1e-6, 1e-6  # absolute and relative tolerance, and the size of a step
    check_jvp(values, lambda at, way: derivatives(at, way, zeros[1])[0], arguments, *bounds)
    check_vjp(values, pullback, arguments, *bounds)


def requested(march: OccupancyMarch, scene: sg.Scene, rays: Ray) -> np.ndarray:
    """The number of samples of each ray that a march requests."""
    return np.asarray(sg.render_rays(scene, rays, march)[-1].requested)


def random_ray(seed: int, spread: float = 0.1) -> Ray:
    """Any ray with a general footprint; it looks from `t = 1` to `t = 3`."""
    rng = np.random.default_rng(seed)
    origin, direction = rng.normal(size=(2, 3))
    d_origin, d_direction = spread * rng.normal(size=(2, 2, 3))
    view = direction / np.linalg.norm(direction)
    return Ray(*map(jnp.asarray, (origin, direction, view, d_origin, d_direction)), 1.0, 3.0)


def random_covariance(seed: int) -> np.ndarray:
    """A symmetric positive 3x3 matrix of size about one."""
    factor = np.random.default_rng(seed).normal(size=(3, 3))
    return factor @ factor.T + 0.1 * np.eye(3)
