"""The tree of surfaces: boxes that hold what is below them, each surface in one leaf."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import scenegraph as sg
from scenegraph.flat._tree import build_tree


CENTERS = np.random.default_rng(0).uniform(-1, 1, (600, 3)).astype(np.float32)


def balls_at(centers):
    places = jax.vmap(lambda at: sg.Similarity(at, scale=0.05))(jnp.asarray(centers))
    return sg.Instances(sg.Surface(sg.Sphere(), sg.Lambert([0.5] * 3)), places)


def tree_of(**nodes):
    return build_tree(sg.flat.flatten(sg.Scene(sg.Group(**nodes))).occluders)


def numbers_of(tree):
    """The surface of every leaf that has one."""
    filled = np.asarray(tree.boxes)[len(tree.kinds) :]
    count = np.sum(~(filled[:, 0] > filled[:, 3]))
    numbers = [np.asarray(stack.members.number) for stack in tree.stacks]
    places = zip(np.asarray(tree.kinds)[:count], np.asarray(tree.places)[:count], strict=True)
    return np.array([numbers[kind][place] for kind, place in places])


@pytest.mark.parametrize("count", [1, 2, 3, 100, 600])
def test_every_node_holds_its_children_and_every_surface_is_in_one_leaf(count):
    tree = tree_of(balls=balls_at(CENTERS[:count]))
    boxes = np.asarray(tree.boxes)
    assert boxes.shape == (2 * len(tree.kinds), 6) and len(tree.kinds) < 2 * count
    numbers = numbers_of(tree)
    assert sorted(numbers) == list(range(count))
    leaves = boxes[len(tree.kinds) : len(tree.kinds) + count]
    assert np.all(leaves[:, :3] <= CENTERS[numbers] - 0.05)
    assert np.all(leaves[:, 3:] >= CENTERS[numbers] + 0.05)
    np.testing.assert_allclose(leaves[:, 3:] - leaves[:, :3], 0.1, rtol=1e-3)
    for node in range(1, len(tree.kinds)):
        for child in (2 * node, 2 * node + 1):
            assert np.all(boxes[node, :3] <= boxes[child, :3])
            assert np.all(boxes[node, 3:] >= boxes[child, 3:])
    # A box that holds nothing is touched by nothing.
    assert np.all(boxes[len(tree.kinds) + count :, 0] > boxes[len(tree.kinds) + count :, 3])


def test_neighbours_are_near():
    order = numbers_of(tree_of(balls=balls_at(CENTERS)))
    steps = lambda points: np.linalg.norm(np.diff(points, axis=0), axis=1).mean()
    assert steps(CENTERS[order]) < 0.3 * steps(CENTERS)


def test_what_has_no_bounds_comes_last():
    plane, ball = sg.Surface(sg.Plane(), "white"), sg.Surface(sg.Sphere(), "white")
    tree = tree_of(plane=plane, first=ball, second=ball)
    assert numbers_of(tree)[-1] == 1  # in the order of names
    assert np.all(np.isinf(tree.boxes[len(tree.kinds) + 2]))
    assert np.all(np.isfinite(tree.boxes[2]))


def test_bounds_that_are_not_finite_are_touched():
    ball, camera = (
        sg.Surface(sg.Sphere(), [1.0, 0.0, 0.0]),
        sg.PerspectiveCamera.look_at([0, -4, 0], [0, 0, 0], [0, 0, 1], 0.8, 64, 64),
    )

    def touched(radius):
        scene = sg.Scene(
            sg.Group(one=ball, other=sg.Surface(sg.Sphere([9.0, 0, 0], radius), "white"))
        )
        return sg.visibility.count_touched(
            sg.flat.flatten(scene), jax.vmap(camera.ray)(jnp.full((1, 2), 0.5))
        )

    assert int(jax.jit(touched)(0.5)[0]) == 0
    assert int(jax.jit(touched)(jnp.nan)[0]) == 1


def test_a_tree_of_nothing_is_none():
    assert tree_of() is None
    assert sg.flat.flatten(sg.Scene(sg.Group())).tree is None


def test_large_members_stand_alone():
    grid = np.linalg.norm(np.mgrid[-1:1:8j, -1:1:8j, -1:1:8j], axis=0) - 0.5
    shapes = [sg.SignedDistance.from_grid(grid * s, [-1] * 3, [1] * 3) for s in (1.0, 2.0)]
    tree = tree_of(**{f"s{i}": sg.Surface(x, "white") for i, x in enumerate(shapes)})
    assert [stack.count for stack in tree.stacks] == [1, 1] and sorted(numbers_of(tree)) == [0, 1]


def count_sorts(jaxpr, size):
    own = sum(x.primitive.name == "sort" and x.invars[0].aval.shape == (size,) for x in jaxpr.eqns)
    inner = (x for equation in jaxpr.eqns for x in jaxprs_in_params(equation.params))
    return own + sum(count_sorts(x, size) for x in inner)


@pytest.mark.parametrize("shadows", [False, True])
def test_surfaces_are_sorted_once_for_camera_and_shadows(shadows):
    lamp = sg.PointLight([1.0, -3.0, 2.0], [9.0] * 3)
    camera = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)

    def draw(centers):
        scene = sg.Scene(sg.Group(balls=balls_at(centers), lamp=lamp))
        return sg.render(scene, camera, integrator=sg.Surfaces(shadows=shadows)).rgb

    assert count_sorts(jax.make_jaxpr(draw)(jnp.asarray(CENTERS)).jaxpr, 600) == 1
