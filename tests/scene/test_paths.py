"""Paths, patterns, selecting and freezing."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog, Dense, GaussianBlob, MipNerfMLP, NerfMLP
from scenegraph.numerics import Frozen, is_frozen
from scenegraph.scene import (
    count_parameters,
    find_camera,
    matches,
    mean_square_weight,
    named_leaves,
    network_weights,
    trainable_leaves,
)


def camera():
    return sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 5.0, 3, 2)


def scene():
    fog = sg.Volume(ConstantFog(0.5, [1, 0, 0]))
    blob = sg.Volume(GaussianBlob([0, 0, 0], 0.5, 2.0, [0, 1, 0]), None)
    return sg.Scene(
        sg.Group(
            cam1=camera(),
            rig=sg.Group(cam2=sg.Transformed(camera(), sg.Pose(jnp.eye(4)))),
            moved=sg.Transformed(sg.Group(fog=fog, deep=sg.Group(fog=fog)), sg.Similarity()),
            blob=blob,
        ),
        background=[0.1, 0.2, 0.3],
    )


CAMERA = ["pose.base", "pose.delta", "focal", "principal_point", "near", "far"]
FOG = ["field.extinction", "field.rgb", "bounds.lower", "bounds.upper"]
PATHS = {
    *(f"cam1.{name}" for name in CAMERA),
    *(f"rig.cam2.{name}" for name in CAMERA),
    *("rig.cam2.transform.base", "rig.cam2.transform.delta"),
    *(f"moved.transform.{name}" for name in ("translation", "rotation", "scale")),
    *(f"moved.fog.{name}" for name in FOG),
    *(f"moved.deep.fog.{name}" for name in FOG),
    *(f"blob.field.{name}" for name in ("center", "radius", "extinction", "rgb")),
    "background.shader.color",
}


def picked(spec, tree):
    """The paths at which a filter spec is true."""
    marks = jax.tree.leaves(spec)
    return {path for (path, _, _), mark in zip(named_leaves(tree), marks, strict=True) if mark}


def frozen_paths(tree):
    return {path for path, _, frozen in named_leaves(tree) if frozen}


# --- Paths and patterns


def test_every_leaf_has_its_path():
    """Groups, `Transformed` and `Frozen` add nothing of their own."""
    found = [path for path, _, _ in named_leaves(scene())]
    assert len(found) == len(set(found))
    assert set(found) == PATHS
    assert frozen_paths(scene()) == {x for x in PATHS if x.endswith(".base")}
    whole = eqx.tree_at(lambda s: s.root.children["blob"], scene(), replace_fn=Frozen)
    assert {path for path, _, _ in named_leaves(whole)} == PATHS


def test_paths_of_lists():
    net = sg.Volume(MipNerfMLP(8, 2, view_width=8, key=jax.random.key(0)))
    paths = [path for path, _, _ in named_leaves(sg.Group(net=net))]
    assert "net.field.network.trunk.1.weight" in paths


PATTERNS = [
    # pattern, path, whether it names the path or something that holds it
    ("a", "a", True),
    ("a", "ab", False),
    ("a", "a.b.c", True),
    ("a.b", "a.b.c", True),
    ("a.c", "a.b.c", False),
    ("b", "a.b", False),
    ("a.b.c.d", "a.b.c", False),
    ("a*", "ab.c", True),
    ("a*", "b.a", False),
    ("a*c", "a.c", False),
    ("*", "a.b", True),
    ("*.b", "a.b", True),
    ("*.c", "a.b.c", False),
    ("*.*.c", "a.b.c", True),
    ("**", "a", True),
    ("**.c", "a.b.c", True),
    ("**.c", "c", True),
    ("**.b", "a.b.c", True),
    ("a.**.d", "a.d", True),
    ("a.**.d", "a.b.c.d.e", True),
    ("a.**.d", "b.a.d", False),
    ("**.b*.d", "a.bx.d", True),
    ("**.b*.d", "a.bx.c.d", False),
    ("A", "a", False),
    ("a.b", "axb", False),
    ("n[0]", "n[0].x", True),
    ("n?", "nx", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), PATTERNS)
def test_patterns(pattern, path, expected):
    assert matches(pattern, path) is expected


SELECTIONS = [
    (["blob"], {x for x in PATHS if x.startswith("blob.")}),
    (["moved.fog.field.rgb"], {"moved.fog.field.rgb"}),
    (["moved.**.rgb"], {"moved.fog.field.rgb", "moved.deep.fog.field.rgb"}),
    (["**.focal", "background"], {"cam1.focal", "rig.cam2.focal", "background.shader.color"}),
    (["cam*.pose"], {"cam1.pose.delta"}),
    (["**.cam*.pose"], {"cam1.pose.delta", "rig.cam2.pose.delta"}),
    (["*.transform"], {x for x in PATHS if x.startswith("moved.transform.")}),
    (["**"], {x for x in PATHS if not x.endswith(".base")}),
]


@pytest.mark.parametrize(("patterns", "expected"), SELECTIONS)
def test_select_by_pattern(patterns, expected):
    assert picked(sg.select(scene(), *patterns), scene()) == expected


def test_select_by_function():
    def where(s):
        return s.root.children["blob"], s.root.children["cam1"].focal

    expected = picked(sg.select(scene(), "blob", "cam1.focal"), scene())
    assert picked(sg.select(scene(), where=where), scene()) == expected


def test_a_selection_partitions():
    chosen, rest = eqx.partition(scene(), sg.select(scene(), "blob.field.rgb"))
    assert [leaf.shape for leaf in jax.tree.leaves(chosen)] == [(3,)]
    assert jax.tree.all(jax.tree.map(np.array_equal, eqx.combine(chosen, rest), scene()))


@pytest.mark.parametrize("use", [sg.select, sg.freeze, sg.thaw])
def test_a_pattern_that_matches_nothing_names_the_nearest(use):
    with pytest.raises(ValueError, match=r"matches 'blob\.field\.radios'.*blob\.field\.radius"):
        use(scene(), "blob", "blob.field.radios")


def test_selecting_what_is_frozen():
    frozen = sg.freeze(scene(), "blob.field.rgb")
    with pytest.raises(ValueError, match=r"'blob\.field\.rgb' matches only frozen leaves"):
        sg.select(frozen, "blob.field.rgb")
    assert "blob.field.rgb" not in picked(sg.select(frozen, "blob"), frozen)
    assert "blob.field.radius" in picked(sg.select(frozen, "blob"), frozen)
    by_function = sg.select(frozen, where=lambda s: s.root.children["blob"].field)
    assert picked(by_function, frozen) == picked(sg.select(frozen, "blob"), frozen)


# --- Freezing


def test_freeze_and_thaw():
    bases = frozen_paths(scene())
    some = sg.freeze(scene(), "moved.fog", "**.focal")
    expected = {f"moved.fog.{name}" for name in FOG} | {"cam1.focal", "rig.cam2.focal"}
    assert frozen_paths(some) == bases | expected
    assert frozen_paths(sg.thaw(some, "moved")) == bases | {"cam1.focal", "rig.cam2.focal"}
    assert jax.tree.structure(sg.thaw(some)) == jax.tree.structure(scene())
    assert frozen_paths(sg.freeze(scene())) == PATHS
    assert jax.tree.structure(sg.freeze(sg.freeze(some))) == jax.tree.structure(sg.freeze(some))


def test_the_base_of_a_pose_stays_frozen():
    thawed = sg.thaw(sg.freeze(scene()))
    assert frozen_paths(thawed) == {x for x in PATHS if x.endswith(".base")}
    assert is_frozen(thawed.root.children["cam1"].pose.base)
    assert frozen_paths(sg.thaw(scene(), "cam1.pose.base")) == frozen_paths(scene())


def test_thawing_a_whole_node():
    whole = eqx.tree_at(lambda s: s.root.children["blob"], scene(), replace_fn=Frozen)
    assert jax.tree.structure(sg.thaw(whole, "blob")) == jax.tree.structure(scene())


def test_trainable_leaves():
    class Mixed(eqx.Module):
        number: jax.Array
        count: jax.Array
        fixed: Frozen
        name: str = eqx.field(static=True)

    mixed = Mixed(jnp.ones(2), jnp.arange(3), Frozen(jnp.ones(1)), "x")
    assert jax.tree.leaves(trainable_leaves(mixed)) == [True, False, False]
    frozen = sg.freeze(scene(), "blob")
    assert picked(trainable_leaves(frozen), frozen) == PATHS - frozen_paths(frozen)


# --- Cameras by path


def test_find_camera():
    tree = scene()
    assert find_camera(tree, "cam1") is tree.root.children["cam1"]
    assert find_camera(tree, "rig.cam2").width == 3
    mine = camera()
    assert find_camera(tree, mine) is mine
    for wrong in ("cam2", "rig", "moved.fog", ""):
        with pytest.raises(ValueError, match=re.escape(f"no camera at {wrong!r}")):
            find_camera(tree, wrong)


def test_cameras_are_moved_by_all_that_is_above_them():
    lift, grow = sg.Similarity([0.0, 0, 1]), sg.Similarity(scale=2.0)
    nested = sg.Transformed(sg.Group(rig=sg.Transformed(sg.Group(cam=camera()), lift)), grow)
    moved = find_camera(sg.Scene(sg.Group(all=nested)), "all.rig.cam")
    origin, direction = moved.line(jnp.array([1.5, 1.0]))
    assert np.allclose(origin, [0, 0, 2]) and np.allclose(direction, [0, 0, -2])


# --- Weights


def test_network_weights_are_those_of_networks():
    key = jax.random.key(0)
    nets = {"a": MipNerfMLP(8, 2, key=key), "b": NerfMLP(8, 2, key=key)}
    tree = sg.Scene(
        sg.Group(**scene().root.children, **{name: sg.Volume(net) for name, net in nets.items()})
    )
    expected = [leaf for net in nets.values() for leaf in jax.tree.leaves(net)]
    assert sorted(x.shape for x in network_weights(tree)) == sorted(x.shape for x in expected)
    assert count_parameters(tree) == sum(leaf.size for leaf in expected)
    assert count_parameters(sg.freeze(tree)) == count_parameters(tree)
    squares = sum(float(jnp.sum(x**2)) for x in expected)
    assert mean_square_weight(tree) == pytest.approx(squares / count_parameters(tree), rel=1e-5)


def test_without_networks():
    assert network_weights(scene()) == [] and count_parameters(scene()) == 0
    assert mean_square_weight(scene()) == 0
    layer = Dense(jnp.ones((3, 2)), jnp.ones(3))
    assert count_parameters({"x": [layer, jnp.ones(7)]}) == 9


# --- Parts by path


def test_parts_by_path():
    whole = scene()
    children = whole.root.children
    assert whole["cam1"] is whole.root["cam1"] is children["cam1"]
    assert whole["moved"] is children["moved"]
    # Transforms and frozen wrappers are omitted on the way, and kept at the end.
    fog = children["moved"].child.children["deep"].children["fog"]
    assert whole["moved.deep.fog"] is whole["moved"]["deep"]["fog"] is fog
    assert whole["moved.transform.scale"] is children["moved"].transform.scale
    frozen = sg.freeze(whole, "moved.**")
    assert is_frozen(frozen["moved.fog.field.extinction"])
    assert sg.Scene(sg.Group(a=Frozen(whole.root)))["a.cam1"] is children["cam1"]
    assert whole["background.shader.color"].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert "rig.cam2" in whole and "rig.cam3" not in whole and "cam1" in whole.root


def test_every_leaf_is_at_its_path():
    whole = scene()
    for path, leaf, _ in named_leaves(whole):
        found = whole[path]
        assert (found.value if is_frozen(found) else found) is leaf, path


def test_parts_by_path_can_be_replaced():
    where = lambda s: s["moved.deep.fog.field.extinction"]
    assert float(where(eqx.tree_at(where, scene(), jnp.asarray(3.0)))) == 3.0
    gradient = jax.grad(lambda s: where(s) ** 2, allow_int=True)(eqx.filter(scene(), eqx.is_array))
    assert float(where(gradient)) == 1.0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("cam", "no 'cam' in the Scene; did you mean 'cam1'? There are: blob, cam1, moved, "),
        ("blob.feild", "no 'feild' in blob; did you mean 'field'? There are: field, "),
        ("moved.sky", "no 'sky' in moved. There are: deep, fog, transform."),
        ("blob.field.rgb.x", "no 'x' in blob.field.rgb. There are: none."),
        ("", "no '' in the Scene. There are: "),
    ],
)
def test_a_missing_part_lists_those_that_there_are(path, message):
    with pytest.raises(KeyError) as caught:
        scene()[path]
    assert message in caught.value.args[0]


def test_parts_are_found_by_text_alone():
    for part in (scene(), scene().root):
        with pytest.raises(TypeError, match=r"by a path such as 'ball.shader'; got 0\.$"):
            list(part)
