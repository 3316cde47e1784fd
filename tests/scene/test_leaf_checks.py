"""Leaves that were put into a scene after its nodes had been made: refused, or said, by path."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from support.helpers import assert_close


VIEW = sg.PerspectiveCamera.look_at([0, -3.5, 1.6], [0, 0, 0.4], [0, 0, 1], 0.7, 16, 12)


def scene():
    ball = sg.Surface(sg.Sphere([0, 0, 0.4], 0.5), sg.Constant([0.8, 0.3, 0.1]))
    return sg.Scene(sg.Group(ball=ball))


def put(path, value, tree=None):
    is_leaf = lambda x: x is None
    return eqx.tree_at(lambda s: s[path], tree or scene(), value, is_leaf=is_leaf)


WRONG = [
    ("ball.shape.center", jnp.zeros(4), r"shape \(3\); got float32\[4\]"),
    ("ball.shape.center", None, "got None"),
    ("ball.shape.radius", jnp.ones(3), "It is a stack of 3: `eqx.filter_vmap`"),
    ("ball.shape.radius", jnp.asarray(1), "must be a float array"),
    ("ball.shape.radius", 0.4, "got 0.4.*`sg.replace` puts numbers in"),
    ("ball.shader.color", np.zeros((2, 3)), r"shape \(3\)"),
]


@pytest.mark.parametrize(("path", "value", "told"), WRONG)
def test_leaves_of_another_kind_are_refused_by_path(path, value, told):
    wrong = put(path, value)
    views = sg.views(VIEW, sg.render(scene(), VIEW))
    rays = jax.vmap(VIEW.ray)(jnp.array([[8.0, 6.0]]))
    calls = [
        lambda: sg.render(wrong, VIEW),
        lambda: jax.eval_shape(lambda: sg.render(wrong, VIEW)),
        lambda: sg.render_rays(wrong, rays),
        lambda: sg.cast_rays(wrong, rays.origin, rays.direction),
        lambda: sg.fit(wrong, views, optimizer=optax.sgd(0.1), steps=1, key=jax.random.key(0)),
        lambda: sg.solve(wrong, views, steps=1),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=f"'{path}' of the scene does not fit.*{told}"):
            call()


def test_leaves_of_the_camera_are_refused_by_path():
    with pytest.raises(TypeError, match="'focal' of the camera"):
        sg.render(scene(), eqx.tree_at(lambda c: c.focal, VIEW, jnp.ones(2)))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_short_numbers_are_refused_by_name(dtype):
    cast = lambda tree: jax.tree.map(
        lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree
    )
    name = jnp.dtype(dtype).name
    with pytest.raises(TypeError, match=f"of the camera is {name}"):
        sg.render(scene(), cast(VIEW))
    with pytest.raises(TypeError, match=f"'ball.shape.center' of the scene is {name}"):
        sg.render(cast(scene()), VIEW)


def test_arrays_of_numpy_are_welcome():
    wanted = sg.render(scene(), VIEW).rgb
    host = jax.tree.map(np.asarray, scene())
    assert_close(sg.render(host, VIEW).rgb, wanted, 1e-6)


def test_stacks_are_mapped_over():
    radii = jnp.array([0.3, 0.5])
    stack = eqx.filter_vmap(lambda r: put("ball.shape.radius", r))(radii)
    seen = eqx.filter_vmap(lambda s: sg.render(s, VIEW).alpha.sum())(stack)
    alone = [sg.render(put("ball.shape.radius", r), VIEW).alpha.sum() for r in radii]
    assert_close(seen, jnp.stack(alone), 1e-4)


def said(tree):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        image = sg.render(tree, VIEW)
    return image, [str(x.message) for x in told]


def test_values_that_no_constructor_takes_are_said_by_path():
    _, told = said(put("ball.shape.radius", jnp.asarray(-0.5)))
    assert told == [
        "1 leaf is out of range, and what has it may vanish, with its gradients: "
        "ball.shape.radius must be positive and finite."
    ]
    assert said(scene())[1] == []


def test_values_among_many_things_are_said_too():
    balls = {f"b{i}": sg.Surface(sg.Sphere([i, 0, 0], 0.1), [1.0, 0, 0]) for i in range(120)}
    many = sg.Scene(sg.Group(**balls))
    for path in ("b7.shape.radius", "b30.shape.radius"):
        many = put(path, jnp.asarray(-1.0), many)
    _, told = said(many)
    assert len(told) == 1 and told[0].startswith("2 leaves are out of range")
    assert "b7.shape.radius" in told[0] and "b30.shape.radius" in told[0]


def test_a_fit_says_what_it_put_out_of_range():
    views = sg.views(VIEW, sg.render(scene(), VIEW))
    far = optax.sgd(-1e5)
    with pytest.warns(UserWarning, match="ball.shape.radius must be positive"):
        sg.fit(
            put("ball.shape.radius", jnp.asarray(0.3)),
            views,
            trainable=["ball.shape.radius"],
            optimizer=far,
            steps=1,
            key=jax.random.key(0),
        )


@pytest.mark.parametrize("radius", [0.0, 1e-30, 1e-8])
def test_a_cloud_without_extent_is_nothing_and_has_derivatives(radius):
    cloud = sg.Volume(sg.fields.GaussianBlob([0.0, 0, 0.4], 0.4, 5.0, [0.8, 0.3, 0.1]))
    tree = put("b.field.radius", jnp.asarray(radius), sg.Scene(sg.Group(b=cloud)))
    alpha = lambda tree: sg.render(tree, VIEW).alpha.sum()
    value, slope = eqx.filter_value_and_grad(alpha)(tree)
    assert float(value) < 1e-6
    assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(slope))
    if radius == 0:
        told = said(tree)[1]
        assert len(told) == 1 and "b.field.radius must be positive" in told[0]


def test_a_small_cloud_keeps_what_there_is_of_it():
    """The integral of density over space is extinction (2 pi)^(3/2) r^3, however few samples."""
    wide = sg.rays.Gaussian(
        jnp.zeros(3), jnp.array([0.0, 1, 0]), jnp.asarray(0.04), jnp.asarray(0.04)
    )
    for radius in (1e-1, 1e-2, 1e-3, 1e-4):
        blob = sg.fields.GaussianBlob([0.05, 0.1, 0.0], radius, 3.0, [1.0, 1.0, 1.0])
        # A Gaussian of variance v = 0.04 + r^2, with as much of it.
        v = 0.04 + radius**2
        exact = 3.0 * (radius**2 / v) ** 1.5 * np.exp(-(0.05**2 + 0.1**2) / (2 * v))
        assert_close(blob.density(wide) / exact, 1.0, 3e-4)
