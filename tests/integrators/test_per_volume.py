"""Volumes that say themselves how they are integrated, alone and among others."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.flat import flatten
from scenegraph.integrators import (
    choose_integrator,
    Guided,
    Hierarchical,
    Integrator,
    OccupancyMarch,
)
from scenegraph.io import read_archive, write_archive
from scenegraph.rays import Ray
from scenegraph.scene import Occupancy, refresh_occupancy
from support.helpers import assert_close


FRONT = [0.0, -6.0, 0.4], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
VIEW = sg.PerspectiveCamera.look_at(*FRONT, 0.8, 48, 16)


def run(density, color, integrator):
    """A small dense ball in a large box, in few of whose cells there is anything."""
    field = GaussianBlob([0.1, 0.0, 0.2], 0.06, density, color)
    known = Occupancy.everywhere(16, part=1)
    volume = sg.Volume(field, sg.Box(), occupancy=known, integrator=integrator)
    for number in range(40):
        volume = refresh_occupancy(volume, key=jax.random.key(number))
    return volume


def nodes():
    """Two fitted objects of unlike settings and sizes, a mesh and a floor."""
    tent = sg.TriangleMesh([[0.7, 0, 0.8], [0.4, 0, 0], [1.0, 0, 0]], [[0, 1, 2]])
    march = OccupancyMarch(256, 16, step=0.012)
    left = run(30.0, [0.9, 0.2, 0.1], march)
    right = run(40.0, [0.1, 0.3, 0.9], Guided(32, 128))
    return {
        "left": sg.Transformed(left, sg.Similarity(translation=[-1.5, 0.0, 0.0], scale=0.8)),
        "right": sg.Transformed(right, sg.Similarity(translation=[1.6, 0.5, 0.0], scale=1.2)),
        "tent": sg.Surface(tent, [0.2, 0.7, 0.2]),
        "floor": sg.Transformed(
            sg.Surface(sg.Plane(), [0.5, 0.5, 0.5]), sg.Similarity(translation=[0.0, 0.0, -0.6])
        ),
    }


def test_two_runs_a_mesh_and_a_floor_are_each_as_good_as_alone():
    every = nodes()
    together = sg.render(sg.Scene(sg.Group(**every), background="white"), VIEW).rgb
    columns = {"left": slice(0, 20), "tent": slice(27, 33), "right": slice(34, 48)}
    finest = Integrator(Hierarchical((512, 128)))
    for name, where in columns.items():
        alone = sg.Scene(sg.Group(floor=every["floor"], it=every[name]), background="white")
        assert_close(together[:, where], sg.render(alone, VIEW).rgb[:, where], 1e-5)
        truth = sg.render(alone, VIEW, finest).rgb[:, where]
        assert float(jnp.std(truth)) > 0.03
        # Cells below the occupancy's threshold are skipped.
        assert_close(together[:, where], truth, 0.05)


def test_explicit_integrators_go_before_the_scenes_and_that_before_a_volumes_own():
    one, two, three = (OccupancyMarch(n, n) for n in (16, 32, 64))
    volume = sg.Volume(ConstantFog(0.4, (1.0, 0.0, 0.0)), integrator=one)
    plain, own = sg.Scene(sg.Group(a=volume)), sg.Scene(sg.Group(a=volume), integrator=two)
    rays = VIEW_RAYS
    count = lambda *scene: sg.render_rays(*scene)[-1].requested.max()
    assert [int(x) for x in (count(plain, rays), count(own, rays))] == [16, 32]
    assert int(count(own, rays, three)) == 64


def rays_along(*origins):
    """Rays of one kind along y."""
    origins = jnp.asarray(origins, float)
    along = jnp.broadcast_to(jnp.array([0.0, 1.0, 0.0]), origins.shape)
    sides = jnp.zeros((len(origins), 2, 3))
    ends = jnp.zeros(len(origins)), jnp.full(len(origins), 20.0)
    return Ray(origins, along, along, sides, sides + 1e-4, *ends)


VIEW_RAYS = rays_along([0.0, -5.0, 0.0], [0.5, -5.0, 0.0])


def boxed(density, color, corners, integrator):
    return sg.Volume(ConstantFog(density, color), sg.Box(*corners), integrator=integrator)


def overlapping(first, second):
    """Red fog from -1 to 1, blue fog from 0 to 3 along y, and fog of no integrator beyond."""
    march, guided = OccupancyMarch(24, 24), Hierarchical((20, 10))
    return sg.Scene(
        sg.Group(
            red=boxed(first, (1.0, 0.0, 0.0), ([-1] * 3, [1] * 3), march),
            blue=boxed(second, (0.0, 0.0, 1.0), ([-1, 0, -1], [1, 3, 1]), guided),
            far=boxed(0.1, (0.0, 1.0, 0.0), ([-1, 4, -1], [1, 5, 1]), None),
        )
    )


def test_media_that_overlap_add_their_densities():
    """Beer and Lambert: T = exp(-sum of densities times lengths); colours by density."""
    found = sg.render_rays(overlapping(0.3, 0.5), VIEW_RAYS)[-1]
    through = np.exp(-np.array([0.3, 0.8, 1.0, 0.1]))  # red, both, blue alone, green
    before = np.cumprod([1.0, *through[:-1]])
    stopped = before * (1 - through)
    assert_close(found.alpha, [1 - np.prod(through)] * 2, 2e-5)
    red, blue = stopped[0] + stopped[1] * 3 / 8, stopped[1] * 5 / 8 + stopped[2]
    # The bounds lie within samples, whose share in the bounds is even over the sample.
    assert_close(found.rgb, [[red, stopped[3], blue]] * 2, 5e-3)


def test_derivatives_of_merged_media_are_those_of_the_closed_form():
    opacity = lambda x: sg.render_rays(overlapping(x, 0.5), VIEW_RAYS)[-1].alpha[0]
    # d/ds (1 - exp(-2 s - 1.6)) = 2 exp(-2 s - 1.6)
    assert_close(jax.grad(opacity)(0.3), 2 * np.exp(-2 * 0.3 - 1.6), 1e-4)


def test_surfaces_between_media_of_unlike_integrators_stop_what_is_behind():
    scene = overlapping(0.3, 0.5)
    card = sg.Surface(sg.Plane([0.0, 2.0, 0.0], [0.0, -1.0, 0.0]), [0.0, 1.0, 0.0])
    scene = dataclasses.replace(scene, root=sg.Group(card=card, **scene.root.children))
    found = sg.render_rays(scene, VIEW_RAYS)[-1]
    assert_close(found.alpha, [1.0, 1.0], 1e-5)
    assert_close(found.rgb[:, 1], [np.exp(-0.3 * 2 - 0.5 * 2)] * 2, 5e-3)


def test_copies_of_a_volume_are_integrated_one_by_one():
    """Far from each other, so that no step of all of them together would meet one."""
    fog = boxed(3.0, (1.0, 0.0, 0.0), ([-0.1] * 3, [0.1] * 3), OccupancyMarch(8, 8))
    places = [sg.Similarity(translation=[0.0, y, 0.0]) for y in (-4.0, 3.0, 9.0)]
    scene = sg.Scene(sg.Group(fogs=sg.Instances(fog, places)))
    found = sg.render_rays(scene, VIEW_RAYS)[-1]
    assert_close(found.alpha, [1 - np.exp(-3 * 0.2 * 3), 0.0], 1e-5)


def test_steps_have_the_length_of_the_volumes_own_frame():
    """A scene and its camera twice as large look alike, and samples are as many."""
    fog = boxed(1.0, (1.0, 0.0, 0.0), ([-1] * 3, [1] * 3), OccupancyMarch(64, 64, step=0.1))
    large = sg.Transformed(fog, sg.Similarity(scale=2.0))
    counts = [
        sg.render_rays(sg.Scene(sg.Group(fog=node)), rays)[-1].requested
        for node, rays in ((fog, VIEW_RAYS), (large, rays_along([0, -10, 0], [1, -10, 0])))
    ]
    assert counts[0].tolist() == counts[1].tolist() == [20, 20]


def test_occupancies_guide_volumes_without_an_integrator():
    """A blob so small that even samples of the whole box find next to nothing of it."""
    fitted = run(60.0, [1.0, 1.0, 1.0], None)
    found = sg.render_rays(sg.Scene(sg.Group(a=fitted)), rays_along([0.1, -5.0, 0.2]))[-1]
    # The integral of d exp(-(y / r)^2 / 2) along y: d r sqrt(2 pi)
    assert_close(found.alpha[0], 1 - np.exp(-60 * 0.06 * np.sqrt(2 * np.pi)), 2e-2)


def test_fixed_samples_of_merged_media_stay_where_they_are():
    scene = overlapping(0.3, 0.5)
    chosen = choose_integrator(scene)
    fixed = chosen.with_fixed_samples(flatten(scene), VIEW_RAYS)
    pair = [sg.render_rays(scene, VIEW_RAYS, x)[-1].rgb for x in (chosen, fixed)]
    assert_close(*pair, 1e-5)


def test_what_does_not_integrate_media_is_refused():
    volume = sg.Volume(ConstantFog(0.4, (1.0, 0.0, 0.0)), integrator=sg.integrators.Surfaces())
    with pytest.raises(TypeError, match="`integrator` of a Volume must be one of media"):
        sg.render(sg.Scene(sg.Group(a=volume)), VIEW)


def test_runs_in_files_of_earlier_versions_keep_their_integrator(tmp_path):
    """It was the scene's, with steps in the world, and is now the volume's."""
    place = sg.Similarity(scale=4.0)
    root = sg.Group(field=sg.Transformed(run(1.0, [1.0, 0.0, 0.0], None), place))
    sg.save(sg.Scene(root, integrator=OccupancyMarch(90, step=0.5)), tmp_path / "new.sg")
    header, arrays = read_archive(tmp_path / "new.sg")
    volume = header["tree"]["fields"]["root"]["fields"]["children"]["dict"]["field"]
    del volume["fields"]["child"]["fields"]["integrator"]
    write_archive(tmp_path / "old.sg", header, arrays)
    loaded = sg.load(tmp_path / "old.sg")
    assert loaded.integrator is None
    assert loaded["field.integrator"] == OccupancyMarch(90, step=0.125)
    assert sg.load(tmp_path / "new.sg").integrator.step == 0.5


def test_integrator_of_a_volume_is_saved_with_it(tmp_path):
    volume = sg.Volume(ConstantFog(0.4, (1.0, 0.0, 0.0)), integrator=Guided(7, 9))
    sg.save(volume, tmp_path / "x.sg")
    assert eqx.tree_equal(sg.load(tmp_path / "x.sg"), volume)
