"""Stacks of leaf nodes hold every node once, under its number, whatever is around it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import scenegraph as sg
from scenegraph.flat import stack_scene_once
from scenegraph.scene import find_contents


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.8, 8, 8)
DRAW = np.random.default_rng(1)


def texture(side):
    return sg.Lambert(sg.ImageTexture(DRAW.uniform(size=(side, side, 3))))


def ball(x, shader=None, **how):
    return sg.Surface(
        sg.Sphere([x, 0.0, 0.0], 0.1 * x + 0.1), shader or sg.Lambert([0.3] * 3), **how
    )


def moved(node):
    return sg.Transformed(node, sg.Similarity([0.0, 0.0, 1.0], scale=2.0))


def mixed():
    """Nodes of like structures between others: frozen, tied, moved, textured, copied."""
    nodes = {
        "a": ball(1),
        "b": sg.Surface(sg.Box([0, 0, 0], [1, 1, 1]), sg.Phong([0.1, 0.2, 0.3])),
        "c": sg.freeze(ball(2), "**"),
        "d": moved(ball(3)),
        "e": ball(4, sg.Phong([0.4, 0.2, 0.3])),
        "f": sg.Instances(ball(5), [sg.Similarity([x, 0.0, 0.0]) for x in (0.0, 1.0, 2.0)]),
        "g": ball(6, texture(64)),
        "h": ball(7, texture(64)),
        "i": ball(8, texture(4)),
        "j": ball(9, texture(4)),
        "k": ball(0, opacity=0.5),
        "l": moved(sg.Group(x=ball(2.5), y=moved(ball(3.5)))),
    }
    return sg.tie(sg.Scene(sg.Group(**nodes)), ["a.shape.radius", "k.shape.radius"])


def members_of(stacks):
    """Returns the node of every number, but for copies, with the transforms above it."""
    found = {}
    for stack in stacks:
        for place, number in enumerate(np.asarray(stack.number)):
            own = jax.tree.map(lambda x, place=place: x[place], stack.varying)
            found[int(number)] = eqx.combine(own, stack.shared)
    return found


def test_every_node_is_in_one_stack_as_it_is():
    scene = sg.scene.open_scene(mixed())
    leaves = [x for x in find_contents(scene).surfaces if not x.counts]
    stacks = stack_scene_once(mixed())
    firsts = [int(stack.number[0]) for stack in stacks.surfaces]
    assert firsts == sorted(firsts)
    members = members_of(stacks.surfaces)
    assert sorted(members) == list(range(15))
    numbers = [n for n in range(15) if n not in (5, 6, 7)]
    for number, leaf in zip(numbers, leaves, strict=True):
        shape, transforms = members[number][0].shape, members[number][1]
        assert eqx.tree_equal((shape, transforms), (leaf.node.shape, leaf.transforms))
    assert members[0][0].shape.radius == members[12][0].shape.radius


def test_occluders_are_stacked_by_shape_and_large_textures_alone():
    stacks = stack_scene_once(mixed())
    numbers = lambda stacks: [np.asarray(stack.number).tolist() for stack in stacks]
    assert [0, 2, 4, 8, 9, 10, 11, 12] in numbers(stacks.occluders)
    assert [8] in numbers(stacks.shaders)
    assert [9] in numbers(stacks.shaders)
    assert [10, 11] in numbers(stacks.shaders)


def test_gradients_reach_every_leaf_that_is_not_frozen():
    def squares(scene):
        arrays = jax.tree.leaves(stack_scene_once(scene).occluders)
        return sum(jnp.sum(x**2) for x in arrays if eqx.is_inexact_array(x))

    scene = mixed()
    slopes = eqx.filter_grad(squares)(scene)
    root, own = slopes.root.children, scene.root.children
    assert jax.tree.leaves(root["c"]) and not any(map(np.any, jax.tree.leaves(root["c"])))
    np.testing.assert_allclose(root["e"].shape.center, 2 * own["e"].shape.center)
    # Twice, for the one that is tied to it.
    np.testing.assert_allclose(root["a"].shape.radius, 4 * own["a"].shape.radius)


def test_transforms_of_copies_can_be_tied():
    places = [sg.Similarity([x, 0.0, 0.0]) for x in (0.0, 1.0, 2.0)]
    scene = sg.Scene(sg.Group(a=sg.Instances(ball(1), places), b=sg.Instances(ball(2), places)))
    expected = stack_scene_once(scene)
    for name in ("translation", "rotation", "scale"):
        scene = sg.tie(scene, [f"a.transforms.{name}", f"b.transforms.{name}"])
    assert eqx.tree_equal(stack_scene_once(scene), expected)


def test_copies_whose_transforms_are_all_tied_are_drawn():
    places = [sg.Similarity([x, 0.0, 0.0]) for x in (0.0, 1.0, 2.0)]
    copies = lambda own: sg.Instances(ball(1), places, {"shape.radius": jnp.asarray(own)})
    # Copies have their own values where the child's leaf is tied to another.
    nodes = {"a": copies([0.2, 0.3, 0.4]), "b": moved(copies([0.5, 0.3, 0.1]))}
    scene = sg.Scene(sg.Group(**nodes, lamp=sg.PointLight([0.0, -4.0, 4.0], [30.0] * 3)))
    tied = sg.tie(scene, ["a.shape.radius", "b.shape.radius"])
    for name in ("translation", "rotation", "scale"):
        tied = sg.tie(tied, [f"a.transforms.{name}", f"b.transforms.{name}"])
    pictures = [sg.render(x, CAMERA).rgb for x in (scene, tied)]
    np.testing.assert_array_equal(*pictures)
    assert jnp.max(pictures[0]) > 0.1


def test_leaves_of_many_nodes_can_be_tied():
    balls = {f"ball{i:03}": ball(i / 300, opacity=0.5) for i in range(300)}
    scene = sg.tie(sg.Scene(sg.Group(**balls, a=moved(ball(9)))), "ball*.shape.radius")
    # The first gives its value to all others, of which there is no leaf.
    stacks = stack_scene_once(scene)
    radii = [m[0].shape.radius for n, m in sorted(members_of(stacks.occluders).items())]
    np.testing.assert_allclose(radii, [1.0] + [0.1] * 300, rtol=1e-6)


def test_a_scene_seen_by_a_traced_camera_is_checked():
    scene = sg.Scene(sg.Group(**{f"ball{i}": ball(i / 9) for i in range(90)}))
    bad = eqx.tree_at(lambda s: s.root.children["ball7"].shape.radius, scene, jnp.array(jnp.nan))
    with pytest.raises(ValueError, match="ball7.shape.radius' is not finite"):
        eqx.filter_eval_shape(lambda camera: sg.render(bad, camera).rgb, CAMERA)


def operands_of(jaxpr):
    """Yields the name, and the number of operands and results, of all equations."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name, max(len(equation.invars), len(equation.outvars))
        for inner in jaxprs_in_params(equation.params):
            yield from operands_of(inner)


@pytest.mark.parametrize("count", [130, 300])
def test_arrays_of_many_nodes_are_operands_of_stacks_alone(count):
    scene = sg.Scene(sg.Group(**{f"ball{i}": ball(i / count) for i in range(count)}))
    loss = lambda scene: jnp.mean(sg.render(scene, CAMERA).rgb ** 2)
    jaxpr, _, _ = eqx.filter_make_jaxpr(eqx.filter_grad(loss))(scene)
    most = {}
    for name, operands in operands_of(jaxpr.jaxpr):
        most[name] = max(operands, most.get(name, 0))
    assert most.pop("stack_alike") == most.pop("unstack_alike") == count
    assert max(most.values()) < count
