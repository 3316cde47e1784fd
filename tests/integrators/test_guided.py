"""Samples drawn from what occupancies know, in boxes and in all of space."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.encodings import Contraction
from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.flat import flatten
from scenegraph.integrators import Guided
from scenegraph.integrators._march import even_steps, March
from scenegraph.rays import Ray, Span
from scenegraph.scene import Occupancy, refresh_occupancy
from support.helpers import assert_close


render_rays = eqx.filter_jit(sg.render_rays)
FAR = 1e4


def ray(origin, direction, near=0.0, far=FAR):
    edge = np.eye(2, 3)[None] * 1e-3
    one = lambda x: np.asarray([x], np.float32)
    return Ray(*map(one, (origin, direction, direction)), 0 * edge, edge, one(near), one(far))


def everywhere(field, radius=2.0, occupancy=None, far_background=False):
    return sg.Volume(
        field,
        None,
        contraction=Contraction(radius),
        occupancy=occupancy,
        far_background=far_background,
    )


def edges_of(guided, scene, rays, keys=None) -> np.ndarray:
    """Edges of the samples of every ray."""
    place = eqx.filter_jit(lambda *arguments: guided._edges(flatten(scene), *arguments))
    return np.asarray(place(rays, keys))


def seen(node, rays, integrator, background=(0.0, 0.0, 0.0)):
    scene = sg.Scene(sg.Group(field=node), background=background)
    return render_rays(scene, rays, integrator)[-1]


@pytest.mark.parametrize("radius", [1.0, 2.0])
def test_fog_in_all_of_space_has_the_depth_of_the_contracted_way(radius):
    """From the middle outwards that is the ball's radius, but for what is beyond the far end."""
    fog = ConstantFog(0.7, (0.2, 0.4, 0.6))
    found = seen(everywhere(fog, radius), ray([0, 0, 0], [0.6, 0, 0.8]), Guided(64, 64))
    expected = 1 - np.exp(-0.7 * radius / 2 * (2 - 1 / FAR))
    assert_close(found.alpha[0], expected, 2e-3)
    assert_close(found.rgb[0], expected * np.array([0.2, 0.4, 0.6]), 2e-3)


def test_a_far_background_hides_the_scenes():
    fog = ConstantFog(0.3, (0.2, 0.4, 0.6))
    node = everywhere(fog, far_background=True)
    found = seen(node, ray([0.3, -0.5, 0.2], [0, 1, 0]), Guided(16, 32), (1.0, 0.0, 0.0))
    assert_close(found.rgb[0], [0.2, 0.4, 0.6], 1e-5)


def test_scaling_scene_and_camera_together_changes_nothing():
    fog = ConstantFog(0.8, (0.2, 0.4, 0.6))
    moved = sg.Transformed(everywhere(fog), sg.Similarity([1.0, 2.0, 3.0], scale=10.0))
    one = seen(everywhere(fog), ray([0.2, -1.5, 0.1], [0, 1, 0]), Guided(16, 32))
    other = seen(moved, ray([3.0, -13.0, 4.0], [0, 10, 0]), Guided(16, 32))
    assert_close(one.alpha, other.alpha, 1e-4)
    assert 0.1 < float(one.alpha[0]) < 0.99


def test_many_guided_samples_see_what_many_even_ones_see():
    blob = GaussianBlob([0.1, 0.0, 0.2], 0.3, 4.0, (0.9, 0.2, 0.1))
    scene = sg.Scene(sg.Group(blob=sg.Volume(blob, sg.Box([-1.2] * 3, [1.2] * 3))))
    camera = sg.PerspectiveCamera.look_at([0.3, -4, 0.5], [0, 0, 0], [0, 0, 1], 0.4, 4, 3)
    rays = sg.data.pixel_rays(dataclasses.replace(camera, far=jnp.asarray(8.0)))
    even = render_rays(scene, rays, sg.Hierarchical((256,)))[-1]
    guided = render_rays(scene, rays, Guided(128, 64))[-1]
    assert np.ptp(even.alpha) > 0.3
    assert_close(guided.alpha, even.alpha, 0, 3e-3)
    assert_close(guided.rgb, even.rgb, 0, 3e-3)


def test_samples_lie_where_the_occupancy_is_thick():
    """Most of them, of a ray through one thick cell."""
    thickness = np.zeros((8, 8, 8), np.float32)
    thickness[:, 5, :] = 5.0
    volume = sg.Volume(ConstantFog(1.0, (1, 1, 1)), sg.Box(), occupancy=Occupancy(thickness))
    scene = sg.Scene(sg.Group(fog=volume))
    edges = edges_of(Guided(40, 64), scene, ray([0, -3, 0.1], [0, 1, 0]))[0]
    # The cell is y from 0.375 to 0.75, which the ray meets at t from 3.375 to 3.75.
    inside = np.mean((edges > 3.3) & (edges < 3.8))
    assert 0.6 < inside < 0.9 and np.all(np.diff(edges) >= 0)
    assert_close(edges[[0, -1]], [1.5, 4.5], 1e-5)


def test_jittered_edges_stay_in_order_and_differ_from_ray_to_ray():
    scene = sg.Scene(sg.Group(fog=everywhere(ConstantFog(1.0, (1, 1, 1)))))
    rays = jax.tree.map(lambda x: np.repeat(x, 5, axis=0), ray([0.1, -1, 0], [0, 1, 0]))
    edges = edges_of(Guided(12, 32), scene, rays, jax.random.split(jax.random.key(0), 5))
    assert np.all(np.diff(edges, axis=1) >= 0)
    assert np.unique(edges[:, 3]).size == 5


def test_steps_are_even_in_contracted_length():
    volume = everywhere(ConstantFog(1.0, (1, 1, 1)))
    line = jax.tree.map(lambda x: x[0], ray([-1.5, 0, 0], [2.0, 0, 0]))

    @jax.jit
    def walk(line):
        march = even_steps(Span(line.near, line.far), volume.pace(line), 50, 0.0, None)
        edges = jax.vmap(lambda n: March.edge(march, n))(jnp.arange(50))
        return jax.vmap(lambda t: Contraction().point(line.at(t)))(edges)[:, 0], march.step

    places, step = walk(line)
    assert_close(np.diff(places), np.full(49, step), 1e-3)


def test_the_occupancy_of_all_of_space_is_of_contracted_places():
    """Cells of a blob's density, at their middles but for the random place in each."""
    blob = GaussianBlob([0.5, 0.0, 0.0], 0.4, 3.0, (1, 1, 1))
    known = Occupancy.everywhere(4, decay=0.0, part=1)
    refresh = eqx.filter_jit(lambda node: refresh_occupancy(node, key=jax.random.key(0)))
    scene = refresh(everywhere(blob, occupancy=known))
    thickness = np.asarray(scene.occupancy.value.thickness)
    middles = np.stack(np.meshgrid(*[np.arange(4) - 1.5] * 3, indexing="ij"), axis=-1)
    distance = np.linalg.norm(middles - [0.5, 0, 0], axis=-1)
    near, far = thickness[distance < 1].mean(), thickness[distance > 2].mean()
    assert near > 10 * far


def test_fixed_samples_are_the_ones_that_are_drawn():
    scene = sg.Scene(sg.Group(fog=everywhere(ConstantFog(0.4, (0.2, 0.4, 0.6)))))
    rays = ray([0.1, -1, 0], [0, 1, 0])
    fix = eqx.filter_jit(lambda scene: Guided(12, 32).with_fixed_samples(flatten(scene), rays))
    fixed = fix(scene)
    assert_close(
        render_rays(scene, rays, fixed)[-1].rgb, render_rays(scene, rays, Guided(12, 32))[-1].rgb
    )


def test_scaled_gradients_are_those_of_what_is_far():
    """A blob two balls away has the same gradient; one at a tenth of that has less than a tenth."""

    @eqx.filter_jit
    def slope(blob, integrator):
        node = lambda blob: sg.Scene(sg.Group(field=everywhere(blob)))
        seen = lambda blob: render_rays(node(blob), ray([0, 0, 0], [0, 1, 0]), integrator)[-1]
        return eqx.filter_grad(lambda blob: seen(blob).alpha[0])(blob).extinction

    plain, scaled = Guided(64, 64), Guided(64, 64, scale_gradients=True)
    for place, low, high in [(1.5, 0.98, 1.01), (0.2, 0.0, 0.1)]:
        blob = GaussianBlob([0.0, place, 0.0], 0.05, 2.0, (0.9, 0.2, 0.1))
        assert low < float(slope(blob, scaled) / slope(blob, plain)) < high


def test_refusals():
    fog = ConstantFog(1.0, (1, 1, 1))
    with pytest.raises(ValueError, match="`samples` and `candidates` must be at least 1; got 0"):
        Guided(0)
    with pytest.raises(ValueError, match="pass `bounds=None`"):
        sg.Volume(fog, contraction=Contraction())
    with pytest.raises(ValueError, match="a `far_background` needs a `contraction`"):
        sg.Volume(fog, None, far_background=True)
