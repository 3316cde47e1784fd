"""Normals and median depths of pictures, against closed forms and a loop over samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fields import AbstractField, GaussianBlob, NerfMLP
from scenegraph.integrators import OccupancyMarch
from scenegraph.rays import Gaussian, Medium
from support.helpers import assert_close


CENTER = np.array([0.1, -0.1, 0.05])
FOG_NORMAL = np.array([2.0, -1.0, 2.0]) / 3


class Fading(AbstractField):
    """A fog whose density falls off exponentially in one direction, everywhere."""

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), jnp.array([0.2, 0.4, 0.6]))

    def density(self, gaussian):
        return jnp.exp(-3 * jnp.sum(jnp.asarray(FOG_NORMAL) * gaussian.mean))


def camera(width=5, height=4, eye=(2.0, -1.5, 1.0)):
    return sg.PerspectiveCamera.look_at(
        list(eye), [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], fov_x=0.3, width=width, height=height
    )


def of(node, integrator=None, **others):
    scene = sg.Scene(sg.Group(x=node, **others), background=[1.0, 1, 1], integrator=integrator)
    return sg.render(scene, camera(), outputs=("normal", "median_depth"))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def blob(extinction=4.0):
    return GaussianBlob(CENTER, 0.4, extinction, [0.9, 0.3, 0.2])


def naive_blob(samples=64, lower=-1.5, upper=1.5):
    """Normals and median depths of the blob, one ray and one sample after the other."""
    normals, medians = np.zeros((4, 5, 3)), np.zeros((4, 5))
    for row in range(4):
        for column in range(5):
            ray = camera().ray(jnp.array([column + 0.5, row + 0.5]))
            origin, way = np.asarray(ray.origin, float), np.asarray(ray.direction, float)
            cuts = np.sort(np.stack([(lower - origin) / way, (upper - origin) / way]), axis=0)
            edges = np.linspace(cuts[0].max(), cuts[1].min(), samples + 1)
            left, total, met = 1.0, np.zeros(3), [0.0]
            for near, far in zip(edges[:-1], edges[1:], strict=True):
                offset = origin + (near + far) / 2 * way - CENTER
                density = 4 * np.exp(-0.5 * offset @ offset / 0.4**2)
                weight = left * -np.expm1(-density * (far - near) * np.linalg.norm(way))
                total += weight * offset / np.linalg.norm(offset)
                left, met = left - weight, [*met, 1 - left + weight]
                met[-1] = 1 - left
            normals[row, column] = total
            medians[row, column] = np.interp(met[-1] / 2, met, edges)
    return unit(normals), medians


def test_blob_against_a_loop():
    """The pixels are small: that samples are Gaussians and not points makes little difference."""
    image = of(sg.Volume(blob()), sg.Hierarchical((64,)))
    normals, medians = naive_blob()
    assert_close(image.normal, normals, 5e-3)
    assert_close(image.median_depth, medians, 2e-3)


def test_the_occupancy_march_sees_the_same():
    image = of(sg.Volume(blob()), OccupancyMarch(64, 64))
    normals, medians = naive_blob()
    assert_close(image.normal, normals, 5e-3)
    assert_close(image.median_depth, medians, 2e-3)


@pytest.mark.parametrize("integrator", [sg.Hierarchical((8, 8)), OccupancyMarch(16, 16)])
def test_fog_with_a_gradient(integrator):
    image = of(sg.Volume(Fading()), integrator)
    assert_close(image.normal, np.broadcast_to(FOG_NORMAL, (4, 5, 3)), 1e-5)


def test_even_fog_has_no_normal():
    image = of(sg.Volume(sg.fields.ConstantFog(2.0, [0.1, 0.2, 0.3])), sg.Hierarchical((8,)))
    assert not np.any(image.normal) and np.all(image.alpha > 0.5)


def test_normals_turn_and_stretch_with_the_node():
    """The density of a stretched fog is constant where `normal . (A^-1 x)` is."""
    matrix = np.array([[1.5, 0.3, 0.0], [0.0, 0.5, 0.2], [-0.1, 0.0, 0.8]])
    image = of(sg.Transformed(sg.Volume(Fading()), sg.Affine(matrix)), sg.Hierarchical((8,)))
    expected = unit(np.linalg.inv(matrix).T @ FOG_NORMAL)
    assert_close(image.normal, np.broadcast_to(expected, (4, 5, 3)), 1e-4)


def hits_of_ball(radius):
    """Where rays meet a ball about CENTER, and their `t`."""
    pixels = np.stack(np.meshgrid(np.arange(5) + 0.5, np.arange(4) + 0.5), axis=-1)
    rays = jax.vmap(jax.vmap(camera().ray))(jnp.asarray(pixels, jnp.float32))
    origin, way = np.asarray(rays.origin, float), np.asarray(rays.direction, float)
    a, b = (way**2).sum(-1), ((origin - CENTER) * way).sum(-1)
    c = ((origin - CENTER) ** 2).sum(-1) - radius**2
    t = (-b - np.sqrt(b**2 - a * c)) / a
    return origin + t[..., None] * way, t


@pytest.mark.slow
def test_ball_has_its_own_normals():
    """The ball fills the picture; its hits are means over pixels. Another behind is not seen."""
    behind = sg.Surface(sg.Sphere([-3.0, 2.0, -1.0], 1.0), [0.5, 0.5, 0.5])
    image = of(sg.Surface(sg.Sphere(CENTER, 0.9), [0.5, 0.5, 0.5]), behind=behind)
    points, t = hits_of_ball(0.9)
    assert_close(image.normal, (points - CENTER) / 0.9, 1e-3)
    assert_close(image.median_depth, t, 1e-3)
    assert_close(image.depth, image.median_depth, 1e-5)


@pytest.mark.slow
def test_ball_in_fog():
    """Thin even fog has no normal of its own, and does not move the median off the ball."""
    fog = sg.Volume(sg.fields.ConstantFog(0.05, [0.5, 0.5, 0.5]))
    integrator = sg.Integrator(sg.Hierarchical((16,)))
    image = of(sg.Surface(sg.Sphere(CENTER, 0.9), [0.5, 0.5, 0.5]), integrator, fog=fog)
    points, t = hits_of_ball(0.9)
    assert_close(image.normal, (points - CENTER) / 0.9, 1e-3)
    assert_close(image.median_depth, t, 1e-3)
    assert np.all(image.depth < image.median_depth)


def test_nothing_has_no_normal():
    scene = sg.Scene(sg.Group(), background=[1.0, 1, 1], integrator=sg.Integrator())
    image = sg.render(scene, camera(), outputs=("normal", "median_depth"))
    assert not np.any(image.normal) and np.all(image.median_depth == camera().far)


def test_only_what_is_asked_for():
    scene = sg.Scene(sg.Group(x=sg.Volume(blob())), integrator=sg.Hierarchical((8,)))
    plain, normals = sg.render(scene, camera()), sg.render(scene, camera(), outputs=["normal"])
    assert plain.normal is None and plain.median_depth is None
    assert normals.normal is not None and normals.median_depth is None
    for name in ("rgb", "alpha", "depth"):
        assert_close(getattr(normals, name), getattr(plain, name), 1e-6)


def test_an_integrator_that_cannot_tell():
    class Deaf(sg.integrators.AbstractIntegrator):
        budget, samples_per_ray = None, 1

        def __call__(self, scene, rays, *, keys=None, outputs=()):
            return sg.Integrator()(scene, rays)

        def with_budget(self, samples):
            return self

        def with_fixed_samples(self, scene, rays):
            return self

    with pytest.raises(ValueError, match="Deaf does not compute normal"):
        sg.render(sg.Scene(sg.Group()), camera(), Deaf(), outputs=["normal"])


@pytest.mark.slow
def test_pictures_with_normals_are_differentiable():
    scene = sg.Scene(sg.Group(x=sg.Volume(blob())), integrator=sg.Hierarchical((8,)))

    def up(scene):
        return jnp.mean(sg.render(scene, camera(2, 2), outputs=["normal"]).normal[..., 2])

    slope = eqx.filter_grad(up)(scene).root.children["x"].field.center
    # The normal of what is seen from the front turns down when the centre goes up.
    assert np.all(np.isfinite(slope)) and slope[2] < 0


@pytest.mark.slow
def test_a_network_fitted_to_a_ball():
    """A soft ball is fitted point by point; seen from any side, normals point away from it."""
    field = NerfMLP(32, 2, view_width=4, degree=2, key=jax.random.key(0))

    def gaussian(point):
        return Gaussian(point, jnp.array([0.0, 0.0, 1.0]), 0.0, 0.0)

    def loss(field, points):
        found = jax.vmap(lambda p: field.density(gaussian(p)))(points)
        away = jnp.linalg.norm(points - jnp.asarray(CENTER), axis=1)
        return jnp.mean((jnp.log1p(found) - jnp.log1p(20 * jax.nn.sigmoid(20 * (0.6 - away)))) ** 2)

    optimizer = optax.adam(1e-2)

    @jax.jit
    def fit(leaves):
        def step(carry, key):
            leaves, moments = carry
            points = jax.random.uniform(key, (256, 3), minval=-1.0)
            slope = jax.grad(lambda x: loss(eqx.combine(x, rest), points))(leaves)
            change, moments = optimizer.update(slope, moments)
            return (optax.apply_updates(leaves, change), moments), None

        keys = jax.random.split(jax.random.key(1), 300)
        return jax.lax.scan(step, (leaves, optimizer.init(leaves)), keys)[0][0]

    leaves, rest = eqx.partition(field, eqx.is_inexact_array)
    ball = sg.Volume(eqx.combine(fit(leaves), rest), sg.Box([-1.0] * 3, [1.0] * 3))
    scene = sg.Scene(sg.Group(x=ball), integrator=sg.Hierarchical((64,)))
    for eye in ((2.0, -1.5, 1.0), (-1.0, 0.5, -2.0)):
        seen = camera(7, 7, eye)
        image = sg.render(scene, seen, outputs=("normal", "median_depth"))
        rays = jax.vmap(seen.ray)(sg.cameras.pixel_centres(7, 7))
        points = rays.origin + image.median_depth.reshape(-1, 1) * rays.direction
        cosine = np.sum(np.asarray(image.normal).reshape(-1, 3) * unit(points - CENTER), axis=1)
        assert np.all(image.alpha > 0.9) and np.mean(cosine) > 0.95 and np.min(cosine) > 0.8
