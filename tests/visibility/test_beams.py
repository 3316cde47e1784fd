"""Single rays never miss a triangle of which their footprint sees anything."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.flat import Boxes
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
    middle = np.array([camera.width, camera.height]) // 2
    corner = np.stack(np.meshgrid(*[np.arange(-2, 2)] * 2), axis=-1).reshape(-1, 1, 2) * 8
    inside = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    pixels = jnp.asarray(middle + corner + inside, jnp.float32)
    return jax.jit(jax.vmap(jax.vmap(camera.ray)))(pixels)


def to_lamp() -> Ray:
    """Shadow rays from points on a few surfaces, some with long footprints."""
    draw = np.random.default_rng(2)
    points = draw.uniform(-1, 1, (16, 1, 3)) + draw.uniform(-0.1, 0.1, (16, 64, 3))
    sides = draw.uniform(-0.03, 0.03, (16, 64, 2, 3)) * draw.choice([1.0, 20.0], (16, 64, 1, 1))
    lamp = jnp.array([1.0, 1.0, 5.0])
    one = lambda point, sides: jax.tree.map(lambda x: x[0], rays_to(lamp, point, sides))
    return jax.jit(jax.vmap(jax.vmap(one)))(jnp.asarray(points), jnp.asarray(sides))


def touched_by(beam, corners, **how):
    """Which rays of a bundle may touch a triangle."""
    return _beams.touched_by(beam, _beams.see_triangle(beam, corners), **how)


BUNDLES = [*CAMERAS, "shadows"]


@functools.cache
def bundles_of(name: str) -> Ray:
    return to_lamp() if name == "shadows" else tiles(CAMERAS[name])


@pytest.mark.parametrize("name", BUNDLES)
def test_what_a_footprint_sees_is_met(name):
    draw = np.random.default_rng(0)
    corners = draw.uniform(-2, 2, (32 * 8, 1, 3)) + (
        draw.normal(size=(32 * 8, 3, 3)) * 10 ** draw.uniform(-2, -0.3, (32 * 8, 1, 1))
    )
    corners, rays = jnp.asarray(corners), bundles_of(name)
    used = jnp.ones(rays.near.shape, bool).at[:, 5].set(False)
    by_component = corners.reshape(-1, 9).T

    @jax.jit
    def all_of(rays):
        beams = jax.vmap(_beams.beam_of)(rays, used)
        some = jnp.broadcast_to(by_component, (rays.near.shape[0], *by_component.shape))
        listed = _beams.faces_within(beams.planes, some)
        over_beams = lambda function: jax.vmap(jax.vmap(function, (None, 0)), (0, None))
        touched = over_beams(touched_by)(beams, corners)
        beside = over_beams(partial(touched_by, margins=False))(beams, corners)
        over_faces = jax.vmap(lambda ray, face: cross_triangle(ray, face).coverage, (None, 0))
        seen = jax.vmap(jax.vmap(over_faces, (0, None)), (0, None))(rays, corners)
        return listed, *(jnp.swapaxes(x, 1, 2) for x in (touched, beside)), seen

    listed, met, boxes, seen = map(np.asarray, all_of(rays))
    assert not np.any(met[:, 5])
    seen = (seen > 1e-5) & np.asarray(used)[..., None]
    assert seen.sum() > 100
    assert not np.any(seen & ~met)
    assert not np.any(seen & ~listed[:, None])
    # Next to what is seen, little is met, and little more by boxes alone.
    assert met.sum() < 2 * seen.sum()
    assert not np.any(met & ~boxes)
    assert met.sum() < boxes.sum() < 3 * met.sum()
    assert listed.sum() < 0.5 * listed.size


@pytest.mark.parametrize("name", BUNDLES)
def test_boxes_about_what_is_seen_are_met(name):
    draw = np.random.default_rng(1)
    center = jnp.asarray(draw.uniform(-2, 2, (400, 3)))
    half = jnp.asarray(10 ** draw.uniform(-3, -0.5, (400, 3)))
    rays = bundles_of(name)
    used = jnp.ones(rays.near.shape, bool)

    @jax.jit
    def meet(rays):
        planes, boxes = jax.vmap(_beams.beam_of)(rays, used).planes, Boxes(center, half)
        return jax.vmap(lambda p: jax.vmap(lambda box: _beams.may_meet(p, box))(boxes))(planes)

    met, rays = jax.tree.map(np.asarray, (meet(rays), rays))
    center, half = np.asarray(center), np.asarray(half)
    # The line of a ray meets a box where the intervals over its axes meet.
    start, way = rays.origin[:, :, None], rays.direction[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(center - half - start) / way, (center + half - start) / way])
    enters = np.maximum(np.max(np.min(ends, axis=0), axis=-1), rays.near[..., None])
    leaves = np.minimum(np.min(np.max(ends, axis=0), axis=-1), rays.far[..., None])
    hit = np.any(enters < leaves, axis=1)
    assert hit.sum() > 5
    assert np.all(met[hit])
    assert met.mean() < 0.5


def test_bundles_that_spread_and_faces_without_places_touch():
    rays = jax.tree.map(lambda x: x[:1], bundles_of("perspective"))
    turned = rays.direction.at[0, 0].multiply(-1)
    wide = Ray(rays.origin, turned, rays.view, rays.d_origin, rays.d_direction, rays.near, rays.far)
    used, beam_of = jnp.ones((1, 64), bool), jax.jit(jax.vmap(_beams.beam_of))
    away = jnp.array([[50.0, 0.0, 0.0], [51.0, 0.0, 0.0], [50.0, 1.0, 0.0]])
    corners = jnp.stack([away, jnp.full((3, 3), jnp.nan)])
    for bundle, expected in ((wide, [True, True]), (rays, [False, True])):
        beams = beam_of(bundle, used)
        listed = _beams.faces_within(beams.planes, corners.reshape(1, 2, 9).swapaxes(1, 2))
        np.testing.assert_array_equal(listed[0], expected)
        one = jax.tree.map(lambda x: x[0], beams)
        for face, touched in zip(corners, expected, strict=True):
            np.testing.assert_array_equal(jax.jit(touched_by)(one, face), touched)


def test_no_rays_meet_nothing():
    rays = bundles_of("perspective")
    beams = jax.jit(jax.vmap(_beams.beam_of))(rays, jnp.zeros(rays.near.shape, bool))
    face = jnp.asarray(np.random.default_rng(0).normal(size=(1, 9, 1)))
    assert not np.any(_beams.faces_within(beams.planes, jnp.repeat(face, 16, axis=0)))
