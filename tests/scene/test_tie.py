"""Leaves that are tied: one value, gradients added, everything else as if each had its own."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.flat import flatten
from scenegraph.interop._jax_function import evaluate, JaxFunction
from scenegraph.numerics import Frozen, Tied
from scenegraph.optimizers import by_path, within
from scenegraph.runs import Checkpoints, load_state
from scenegraph.scene import find_camera, named_leaves, Occupancy, open_scene, refresh_occupancy
from support.helpers import assert_close


KEY = jax.random.key(0)
EYES = [[0.0, -4.0, 1.0], [1.0, -4.0, 0.5], [-1.5, -3.5, 2.0]]
RADII = ["blob0.field.radius", "blob1.field.radius", "blob2.field.radius"]
CAMERAS = ["cam0", "cam1", "rig.cam2"]
FOCALS = ["cam0.focal", "cam1.focal", "rig.cam2.focal"]


def camera(number, fov=0.7):
    up = [0.0, 0.0, 1.0]
    return sg.PerspectiveCamera.look_at(EYES[number], [0.0] * 3, up, fov, 12, 9)


def blob(x, radius, color):
    return sg.Volume(GaussianBlob([x, 0.0, 0.1 * x], radius, 4.0, color))


def scene(fov=(0.7, 0.7, 0.7), radii=(0.4, 0.4, 0.4)):
    colors = [0.9, 0.2, 0.1], [0.1, 0.8, 0.3], [0.2, 0.3, 0.9]
    blobs = {f"blob{i}": blob(0.6 * (i - 1), radii[i], colors[i]) for i in range(3)}
    moved = sg.Transformed(camera(2, fov[2]), sg.Similarity([0.1, 0.0, 0.0]))
    return sg.Scene(
        sg.Group(
            cam0=camera(0, fov[0]),
            cam1=camera(1, fov[1]),
            rig=sg.Group(cam2=moved),
            **blobs,
        ),
        background=[0.9, 0.2, 0.1],
        integrator=sg.Hierarchical((8,)),
    )


@pytest.fixture(scope="module")
def untied():
    return scene()


@pytest.fixture(scope="module")
def tied(untied):
    return sg.tie(sg.tie(untied, ["cam*.focal", "rig.cam2.focal"]), "blob*.field.radius")


def leaf(tree, path):
    return next(x for name, x, _ in named_leaves(tree) if name == path)


def with_leaf(tree, path, value):
    """The tree with another value in one of its leaves."""
    mark = sg.scene.label_leaves(tree, lambda name: name == path)
    return jax.tree.map(lambda x, wanted: value if wanted else x, tree, mark)


@eqx.filter_jit
def gradients(loss, tree):
    return {path: x for path, x, _ in named_leaves(eqx.filter_grad(loss)(tree))}


def brightness(scene):
    """Sees every blob with every camera, each ray with a weight of its own."""
    rng = np.random.default_rng(0)
    pixels, weights = rng.uniform(3, 8, size=(8, 2)), rng.uniform(size=(24, 3))
    rays = [jax.vmap(find_camera(scene, name).ray)(pixels) for name in CAMERAS]
    rays = jax.tree.map(lambda *xs: jnp.concatenate(xs), *rays)
    return jnp.sum(weights * sg.render_rays(scene, rays)[-1].rgb)


def weighted_radii(scene):
    """`r_0 + 2 r_1 + 4 r_2`."""
    blobs = [open_scene(scene).root.children[f"blob{i}"] for i in range(3)]
    return sum(2**i * blob.field.radius for i, blob in enumerate(blobs))


# --- One value


def test_the_first_by_path_gives_its_value_to_the_others():
    start = scene(radii=(0.3, 0.5, 0.6))
    opened = open_scene(sg.tie(start, ["blob2.field.radius", "blob0.field.radius"]))
    radii = [float(leaf(opened, path)) for path in RADII]
    assert_close(radii, [0.3, 0.5, 0.3])


def test_a_picture_is_that_of_equal_leaves(tied, untied):
    wider = with_leaf(tied, "cam0.focal", leaf(tied, "cam0.focal") / 2)
    for path in FOCALS:
        untied = with_leaf(untied, path, leaf(tied, "cam0.focal") / 2)
    np.testing.assert_array_equal(sg.render(wider, "cam1").rgb, sg.render(untied, "cam1").rgb)


def test_blobs_are_still_stacked(tied, untied):
    """As many programs as without ties: the structures are the same."""
    structures = [jax.tree.structure(flatten(x)) for x in (tied, untied)]
    assert structures[0] == structures[1]


def test_only_the_first_is_listed(tied, untied):
    missing = set(RADII[1:] + FOCALS[1:])
    every = {path for path, _, _ in named_leaves(untied)}
    assert {path for path, _, _ in named_leaves(tied)} == every - missing


def test_description_names_both_sides(tied):
    lines = [line.strip("│├└─ ") for line in sg.describe(tied).splitlines()]
    assert "focal  float32[] = cam1.focal, rig.cam2.focal" in lines
    assert lines.count("focal  = cam0.focal") == 2
    assert "radius  float32[] = blob1.field.radius, blob2.field.radius" in lines
    many = sg.Scene(sg.Group(**{f"b{i}": blob(i, 1.0, [0.1] * 3) for i in range(9)}))
    text = sg.describe(sg.tie(many, "b*.field.radius"))
    assert re.search(r"radius  float32\[\] = b1[^\n]*, b4.field.radius and 4 more\n", text)


# --- One gradient


def test_a_gradient_is_the_sum_of_those_of_untied_leaves(tied, untied):
    together, alone = gradients(brightness, tied), gradients(brightness, untied)
    assert_close(together[RADII[0]], sum(alone[path] for path in RADII), 1e-5)
    assert_close(together[FOCALS[0]], sum(alone[path] for path in FOCALS), 1e-5)
    assert_close(together["blob1.field.center"], alone["blob1.field.center"], 1e-5)
    assert set(together) == {path for path, _, _ in named_leaves(tied)}


@pytest.mark.slow
def test_a_gradient_agrees_with_finite_differences(tied):
    checks = sg.check_gradients(tied, "cam1", pixels=48)
    found = {check.path: check for check in checks}
    assert {RADII[0], FOCALS[0]} <= set(found) and not {*RADII[1:], *FOCALS[1:]} & set(found)
    assert {found[RADII[0]].verdict, found[FOCALS[0]].verdict} == {"right"}


def test_the_background_may_be_tied_to_a_shader(untied):
    both = sg.tie(untied, ["blob0.**.rgb", "background.shader.color"])
    paths = "background.shader.color", "blob0.field.rgb"
    assert [path for path, _, _ in named_leaves(both) if path in paths] == [paths[0]]
    assert open_scene(both).root.children["blob0"].field.rgb is leaf(both, paths[0])


# --- Cameras


def test_a_camera_by_its_path_has_the_value(tied):
    assert find_camera(tied, "cam1").focal is leaf(tied, "cam0.focal")
    assert find_camera(tied, "rig.cam2").camera.focal is leaf(tied, "cam0.focal")


@pytest.mark.slow
def test_views_of_cameras_in_the_scene_fit_their_one_focal_length():
    truth = sg.tie(scene(), ["cam*.focal", "rig.cam2.focal"])
    names = ["cam0", "cam1"]
    views = sg.views(names, [sg.render(truth, name) for name in names])
    start = with_leaf(truth, "cam0.focal", 1.1 * leaf(truth, "cam0.focal"))
    found = sg.fit(
        start,
        views,
        trainable=["cam0.focal"],
        optimizer=optax.adam(optax.cosine_decay_schedule(0.1, 60)),
        steps=60,
        key=KEY,
    ).scene
    assert_close(leaf(found, "cam0.focal"), leaf(truth, "cam0.focal"), 0.01)
    own = open_scene(found)
    assert len({float(leaf(own, path)) for path in FOCALS}) == 1


def test_a_node_used_by_hand_says_what_to_do(tied):
    alone = tied.root.children["cam1"]
    with pytest.raises(TypeError, match=r"tied to 'cam0.focal'.*open_scene.*named by its path"):
        sg.render(tied, alone)
    opened = open_scene(tied).root.children["cam1"]
    np.testing.assert_array_equal(sg.render(tied, opened).rgb, sg.render(tied, "cam1").rgb)


# --- What else concerns leaves


def test_selecting_and_freezing_the_first_concerns_all(tied):
    assert sum(jax.tree.leaves(sg.select(tied, "blob*.field.radius"))) == 1
    cold = sg.freeze(tied, "blob0.field.radius")
    assert gradients(weighted_radii, tied)[RADII[0]] == 1 + 2 + 4
    assert gradients(weighted_radii, cold)[RADII[0]] == 0
    assert eqx.tree_equal(sg.scene.thaw(cold, RADII[0]), tied)


def frozen_as_a_whole(scene, name):
    children = {**scene.root.children, name: Frozen(scene.root.children[name])}
    return dataclasses.replace(scene, root=sg.Group(**children))


@pytest.mark.parametrize(("name", "expected"), [("blob0", 0), ("blob1", 1 + 4), ("blob2", 1 + 2)])
def test_no_gradient_comes_out_of_a_node_that_is_frozen_as_a_whole(tied, name, expected):
    cold = frozen_as_a_whole(tied, name)
    assert gradients(weighted_radii, cold)[RADII[0]] == expected


@pytest.mark.parametrize(
    "name",
    [
        lambda s: sg.select(s, "blob1.field.radius"),
        lambda s: sg.freeze(s, "blob1.field.radius"),
        lambda s: by_path({"blob1.field.radius": optax.sgd(1.0)}).init(s),
        lambda s: within({"blob1.field.radius": (0.0, 1.0)}).init(s),
    ],
)
def test_a_pattern_of_others_names_the_first(tied, name):
    with pytest.raises(ValueError, match=r"'blob1.field.radius' is tied to 'blob0.field.radius'"):
        name(tied)


def test_a_scene_is_saved_with_its_ties(tied, tmp_path):
    sg.save(tied, tmp_path / "scene.sg")
    assert eqx.tree_equal(sg.load(tmp_path / "scene.sg"), tied)
    cold = sg.freeze(tied)
    sg.save(cold, tmp_path / "cold.sg")
    assert eqx.tree_equal(sg.load(tmp_path / "cold.sg"), cold)


def test_a_node_can_be_changed_by_hand(tied):
    """As long as it stays in its place, with constructors and their checks as ever."""
    small = dataclasses.replace(tied.root.children["blob1"].field, center=[0.0, 0.5, 0.0])
    changed = eqx.tree_at(lambda s: s.root.children["blob1"].field, tied, small)
    assert float(open_scene(changed).root.children["blob1"].field.radius) == np.float32(0.4)


def cloud_scene():
    blobs = {
        f"blob{i}": sg.Volume(GaussianBlob([0.3 * i, 0.0, 0.0], 0.3, 3.0, [0.9, 0.2 * i, 0.1]))
        for i in range(2)
    }
    cloud = sg.Scene(sg.Group(cam=camera(0), **blobs), integrator=sg.Hierarchical((8,)))
    return sg.tie(cloud, "blob*.field.radius")


def fit_clouds(start, steps, state=None, callbacks=()):
    """A few steps towards a picture of the clouds made smaller."""
    small = with_leaf(start, "blob0.field.radius", jnp.asarray(0.25))
    return sg.fit(
        start,
        sg.views("cam", sg.render(small, "cam")),
        optimizer=optax.adam(0.01),
        trainable=["blob*.field"],
        steps=steps,
        key=KEY,
        state=state,
        callbacks=callbacks,
    )


@pytest.mark.slow
def test_a_resumed_fit_ends_where_an_undisturbed_one_does(tmp_path):
    start = cloud_scene()
    with Checkpoints(tmp_path, 2) as checkpoints:
        whole = fit_clouds(start, 4, callbacks=[checkpoints])
    half = load_state(tmp_path / "00000002.sg", whole.state)
    assert int(half.step) == 2
    assert eqx.tree_equal(fit_clouds(start, 4, half).state, whole.state)


@pytest.mark.slow
def test_a_fit_goes_on_with_leaves_that_are_free_again():
    half = fit_clouds(cloud_scene(), 2).state
    free = sg.untie(half.model)
    origins = {"blob1.field.radius": "blob0.field.radius"}
    settings = {"optimizer": optax.adam(0.01), "trainable": ["blob*.field"]}
    state = sg.migrate(half, free, origins=origins, **settings)
    moments = {path: x for path, x, _ in named_leaves(state.moments[0].mu)}
    assert moments["blob1.field.radius"] == moments["blob0.field.radius"] != 0
    after = fit_clouds(free, 6, state).scene
    assert leaf(after, "blob1.field.radius") != leaf(after, "blob0.field.radius")
    again = sg.migrate(half, half.model, **settings)
    assert eqx.tree_equal(again, half)


def test_occupancies_are_refreshed_with_tied_fields():
    everywhere = Occupancy.everywhere(2)
    fogs = {f"fog{i}": sg.Volume(ConstantFog(i + 1.0, [1.0] * 3)) for i in range(2)}
    fogs = {k: dataclasses.replace(v, occupancy=everywhere) for k, v in fogs.items()}
    cloud = sg.Scene(sg.Group(**fogs))
    both = sg.tie(cloud, "fog*.field.extinction")
    fresh, free = refresh_occupancy(both, key=KEY), sg.untie(both)
    assert isinstance(fresh.root.children["fog1"].field.extinction, Tied)
    assert eqx.tree_equal(sg.untie(fresh), refresh_occupancy(free, key=KEY))


def test_a_function_for_torch_gets_every_leaf_in_its_place(tied):
    total = JaxFunction(lambda s: s.root.children["blob2"].field.radius[None], None, "HWC")
    free, fixed = eqx.partition(tied, eqx.is_array)
    assert_close(evaluate(total._replace(fixed=fixed), (free, ())), [0.4])


# --- Free again


def test_untied_leaves_have_the_value_and_a_gradient_of_their_own(tied, untied):
    changed = with_leaf(tied, RADII[0], jnp.asarray(0.45))
    some = sg.untie(changed, "blob1")
    assert [path for path, _, _ in named_leaves(some) if path in RADII] == RADII[:2]
    assert float(leaf(some, RADII[1])) == np.float32(0.45)
    every = sg.untie(some, "blob0.field.radius")
    assert [path for path, _, _ in named_leaves(every) if path in RADII] == RADII
    assert eqx.tree_equal(sg.untie(tied), untied)
    assert eqx.tree_equal(sg.untie(untied), untied)
    cold = sg.untie(sg.freeze(tied, RADII[0]))
    assert {path for path, _, frozen in named_leaves(cold) if frozen} >= set(RADII)


# --- Errors


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ("cam0.focal", r"at least two leaves are tied; \['cam0.focal'\] match cam0.focal"),
        (["blob0.field.radius", "blo.field"], "matches 'blo.field'.*nearest are: blob"),
        ("blob*.field", r"'blob0.field.center' is float32\[3\], 'blob0.field.extinction' is"),
        ("cam*.pose", r"frozen leaves cannot be tied: cam0.pose.base, cam1.pose.base. `thaw`"),
    ],
)
def test_what_cannot_be_tied(untied, patterns, words):
    with pytest.raises(ValueError, match=words):
        sg.tie(untied, patterns)


@pytest.mark.parametrize("pattern", ["blob*.field.radius", RADII[0], RADII[2]])
def test_leaves_are_not_tied_twice(tied, pattern):
    words = r"'blob\d.field.radius' is tied to 'blob0.field.radius' already; `untie`"
    with pytest.raises(ValueError, match=words):
        sg.tie(tied, [pattern, "cam0.near"])


def test_dtypes_must_be_equal(untied):
    half = with_leaf(untied, RADII[1], jnp.asarray(0.4, jnp.float16))
    with pytest.raises(ValueError, match=r"'blob1.field.radius' is float16\[\]"):
        sg.tie(half, "blob*.field.radius")


def test_untying_what_is_not_tied(tied, untied):
    with pytest.raises(ValueError, match=r"matches 'lamp'. Tied are: 'blob1.field.radius' to 'b"):
        sg.untie(tied, "lamp")
    with pytest.raises(ValueError, match="matches 'lamp'. Tied are: none"):
        sg.untie(untied, ["lamp"])


def test_a_leaf_that_is_gone(tied):
    children = {name: x for name, x in tied.root.children.items() if name != "blob0"}
    rest = dataclasses.replace(tied, root=sg.Group(**children))
    for use in (lambda: sg.render(rest, "cam0"), lambda: sg.untie(rest)):
        with pytest.raises(ValueError, match="tied to 'blob0.field.radius', but there are 0 leav"):
            use()


def test_a_path_that_two_nodes_have():
    """Transforms do not appear in paths: those of one child have the same."""
    twice = sg.Transformed(
        sg.Transformed(blob(0, 1.0, [1.0] * 3), sg.Similarity()), sg.Similarity()
    )
    both = sg.tie(sg.Scene(sg.Group(thing=twice)), "thing.transform.scale")
    assert len([path for path, _, _ in named_leaves(both) if path.endswith("scale")]) == 1
    outer = with_leaf(both, "thing.transform.scale", jnp.asarray(2.0))
    assert_close(flatten(outer).volumes[0].members.world_from_node.matrix[0], 4 * np.eye(3))
