"""Gradients through the whole of `render`, leaf by leaf, against differences in float64."""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import pixel_rays
from scenegraph.encodings import IntegratedPositional
from scenegraph.fields import ConstantFog, GaussianBlob, MipNerfMLP
from scenegraph.flat import flatten
from scenegraph.scene import named_leaves
from support.helpers import assert_close


def camera():
    return sg.PerspectiveCamera(
        sg.Pose.look_at([2.0, -1.5, 1.0], [0.1, 0.0, 0.0], [0.0, 0.0, 1.0]),
        4.0,
        3,
        2,
        principal_point=[1.4, 1.1],
        near=2.0,
        far=3.2,
    )


def fog():
    return sg.Volume(ConstantFog(0.7, [0.1, 0.6, 0.9]), sg.Box([-0.8, -0.7, -0.6], [0.5, 0.9, 1.0]))


def blob():
    return GaussianBlob([0.2, -0.1, 0.1], 0.5, 1.5, [0.9, 0.3, 0.2])


def network():
    """Its biases are not zero: with those, a unit may stand exactly at its kink."""
    encoding, key = IntegratedPositional(0, 3), jax.random.key(1)
    net = MipNerfMLP(8, 2, view_width=8, encoding=encoding, view_degree=2, key=key)
    leaves, treedef = jax.tree.flatten(net)
    rng = np.random.default_rng(0)
    return treedef.unflatten([leaf + 0.1 * rng.normal(size=leaf.shape) for leaf in leaves])


def open_scene():
    """A network from near to far; a blob and a box of fog, moved and stretched."""
    turn = sg.Similarity([0.1, 0.2, -0.1], [0.9, 0.2, -0.3, 0.1], 1.2)
    stretch = sg.Affine([[1.2, 0.1, 0.0], [0.0, 0.8, 0.2], [0.1, 0.0, 0.9]], [0.0, 0.1, 0.0])
    moved = sg.Group(blob=sg.Volume(blob(), None), fog=sg.Transformed(fog(), stretch))
    tree = sg.Group(net=sg.Volume(network(), None), moved=sg.Transformed(moved, turn), cam=camera())
    return sg.Scene(tree, background=[0.2, 0.5, 0.7])


def boxed_scene():
    """Nothing outside two boxes, which `near` and `far` cut: all four say where samples lie."""
    small = sg.Volume(blob(), sg.Box([-0.4, -0.5, -0.7], [0.9, 0.4, 0.6]))
    turn = sg.Pose(jnp.eye(4), [0.1, -0.2, 0.1, 0.4, 0.1, -0.3])
    tree = sg.Group(fog=fog(), blob=sg.Transformed(small, turn), cam=camera())
    return sg.freeze(sg.Scene(tree, background=[0.2, 0.5, 0.7]), "fog.field.rgb")


CASES = {
    "one level": (open_scene, sg.Hierarchical((16,))),
    "two levels": (boxed_scene, sg.Hierarchical((16, 16), stop_gradient=False)),
}


def loss(scene, integrator=None, chunk="auto"):
    """A number into which every pixel and channel enters with a weight of its own."""
    image = sg.render(scene, "cam", integrator, chunk=chunk)
    numbers = jnp.concatenate([image.rgb.ravel(), image.alpha.ravel(), image.depth.ravel()])
    return jnp.sum(numbers * jnp.linspace(0.5, 1.5, numbers.size))


def relative_errors(function, scene, step=1e-6):
    """Of the slope of `function` along one random direction of every leaf that is not frozen."""
    both = eqx.filter_jit(eqx.filter_value_and_grad(function))
    slopes = jax.tree.leaves(both(scene)[1])
    leaves, treedef = jax.tree.flatten(scene)
    rng, errors = np.random.default_rng(0), {}
    for index, (path, leaf, frozen) in enumerate(named_leaves(scene)):
        if frozen:
            assert not np.any(slopes[index]), path
        else:
            way = rng.normal(size=leaf.shape)
            ends = [[*leaves[:index], leaf + h * way, *leaves[index + 1 :]] for h in (-step, step)]
            below, above = (both(jax.tree.unflatten(treedef, end))[0] for end in ends)
            expected = (above - below) / (2 * step)
            errors[path] = float(abs(np.sum(slopes[index] * way) - expected) / abs(expected))
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_leaf(x64, case):
    """Differences know nothing of held samples: either there is one level, or none are held."""
    scene, integrator = CASES[case]
    errors = relative_errors(lambda s: loss(s, integrator), scene())
    assert {path: error for path, error in errors.items() if not error < 1e-6} == {}


@pytest.mark.slow
def test_chunks_do_not_change_the_gradient(x64):
    """Six pixels, four at a time: the last chunk is padded with pixels that must not count."""
    gradient, few = eqx.filter_jit(eqx.filter_grad(loss)), sg.Hierarchical((8,))
    scene = sg.Scene(sg.Group(fog=fog(), cam=camera()), background=[0.2, 0.5, 0.7])
    whole, parts = (gradient(scene, few, chunk=chunk) for chunk in (6, 4))
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        assert_close(a, b, 1e-10, 1e-12)


@pytest.mark.slow
def test_every_single_parameter_of_a_field(x64):
    """Two levels as they are trained: differences are taken with the finer samples held."""
    scene = sg.Scene(sg.Group(net=sg.Volume(network())), background=[0.2, 0.5, 0.7])
    view, levels = camera(), sg.Hierarchical((6, 6))
    rays = pixel_rays(view)

    def value(scene, integrator):
        coarse, fine = sg.render_rays(scene, rays, integrator)
        weights = jnp.linspace(0.5, 1.5, fine.rgb.size).reshape(fine.rgb.shape)
        return jnp.sum(weights * fine.rgb) + 0.1 * jnp.sum(weights * coarse.rgb)

    slopes = eqx.filter_jit(eqx.filter_grad(value))(scene, levels)
    held = levels.with_fixed_samples(flatten(scene), rays)
    numbers, unravel = jax.flatten_util.ravel_pytree(scene)
    steps = 1e-6 * jnp.eye(numbers.size)

    @jax.jit
    @jax.vmap
    def differences(step):
        ends = (value(unravel(numbers + sign * step), held) for sign in (1, -1))
        return jnp.subtract(*ends) / 2e-6

    assert numbers.size > 400
    assert_close(jax.flatten_util.ravel_pytree(slopes)[0], differences(steps), 1e-6)
