"""Single rays never miss a triangle of which their footprint sees anything."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.lights._base import rays_to
from scenegraph.rays import Ray
from scenegraph.shapes import cross_triangle
from scenegraph.visibility import _beams


AT = [0.0, -4.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
CAMERAS = {
    "perspective": sg.PerspectiveCamera.look_at(*AT, 0.7, 32, 32),
    "orthographic": sg.OrthographicCamera.look_at(*AT, 4.0, 32, 32),
    "panorama": sg.PanoramaCamera(sg.Pose.look_at(*AT), 256, 128),
}


def tiles(camera) -> Ray:
    """The rays of 8 x 8 neighbouring pixels, for some tiles about the middle of the picture."""
    middle = jnp.array([camera.width, camera.height]) // 2
    corner = jnp.stack(jnp.meshgrid(*[jnp.arange(-2, 2)] * 2), axis=-1).reshape(-1, 1, 2) * 8
    inside = jnp.stack(jnp.meshgrid(*[jnp.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    return jax.vmap(jax.vmap(camera.ray))(middle + corner + inside)


def to_lamp() -> Ray:
    """Shadow rays from points on a few surfaces, some with long footprints."""
    draw = np.random.default_rng(2)
    points = draw.uniform(-1, 1, (16, 1, 3)) + draw.uniform(-0.1, 0.1, (16, 64, 3))
    sides = draw.uniform(-0.03, 0.03, (16, 64, 2, 3)) * draw.choice([1.0, 20.0], (16, 64, 1, 1))
    lamp = jnp.array([1.0, 1.0, 5.0])
    one = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    return jax.vmap(jax.vmap(one))(jnp.asarray(points), jnp.asarray(sides))


BUNDLES = {name: tiles(camera) for name, camera in CAMERAS.items()} | {"shadows": to_lamp()}


@pytest.mark.parametrize("name", BUNDLES)
def test_what_a_footprint_sees_is_met(name):
    draw = np.random.default_rng(0)
    corners = draw.uniform(-2, 2, (32 * 8, 1, 3)) + (
        draw.normal(size=(32 * 8, 3, 3)) * 10 ** draw.uniform(-2, -0.3, (32 * 8, 1, 1))
    )
    center = corners.mean(axis=1)
    radius = np.linalg.norm(corners - center[:, None], axis=2).max(axis=1)
    corners, rays = jnp.asarray(corners), BUNDLES[name]
    used = jnp.ones(rays.near.shape, bool).at[:, 5].set(False)

    @jax.jit
    def both(rays):
        beams = jax.vmap(_beams.beam_of)(rays, used)
        some = lambda x: jnp.broadcast_to(x, (rays.near.shape[0], *x.shape))
        words = []
        for begin in range(0, len(radius), 32):
            part = slice(begin, begin + 32)
            balls = sg.transforms.Ball(some(jnp.asarray(center[part])), some(radius[part]))
            words.append(_beams.touched_words(beams, balls))
        over_faces = jax.vmap(lambda ray, face: cross_triangle(ray, face).coverage, (None, 0))
        seen = jax.vmap(jax.vmap(over_faces, (0, None)), (0, None))(rays, corners)
        return jnp.stack(words, axis=-1), seen

    words, seen = map(np.asarray, both(rays))
    met = (words[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    met = met.reshape(*words.shape[:2], -1).astype(bool)
    assert not np.any(met[:, 5])
    seen = (seen > 1e-4) & np.asarray(used)[..., None]
    assert seen.sum() > 100
    assert not np.any(seen & ~met)
    assert met.sum() < 0.3 * met.size


def test_bundles_that_spread_and_balls_without_bounds_touch():
    rays = jax.tree.map(lambda x: x[:1], BUNDLES["perspective"])
    turned = rays.direction.at[0, 0].multiply(-1)
    wide = Ray(rays.origin, turned, rays.view, rays.d_origin, rays.d_direction, rays.near, rays.far)
    used = jnp.ones((1, 64), bool)
    center = jnp.zeros((1, 32, 3)).at[0, 1].set(jnp.nan)
    radius = jnp.full((1, 32), 0.1).at[0, 2].set(jnp.inf).at[0, 3].set(-jnp.inf)
    balls = sg.transforms.Ball(center, radius)
    words = _beams.touched_words(jax.vmap(_beams.beam_of)(wide, used), balls)
    np.testing.assert_array_equal(words, np.uint32(0xFFFFFFFF - 8))
    words = _beams.touched_words(jax.vmap(_beams.beam_of)(rays, used), balls)
    assert np.all((np.asarray(words) & 14) == 6)
