"""`check_gradients` finds what is right, and what was made wrong on purpose."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.diagnostics import check_gradients, gradient_table
from scenegraph.fields import AbstractField
from scenegraph.rays import Medium


LEVELS = sg.Hierarchical((6, 6))
CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.5, 6, 4)


@jax.custom_jvp
def doubled(x):
    """The identity, with a derivative of two."""
    return x


doubled.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))


class Odd(AbstractField):
    """Fog, one of whose numbers has an odd derivative."""

    right: jax.Array
    wrong: jax.Array
    lost: jax.Array
    broken: jax.Array
    unused: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        rgb = jnp.stack([doubled(self.wrong), jax.lax.stop_gradient(self.lost), self.right])
        return Medium(self.density(gaussian), rgb)

    def density(self, gaussian):
        # The root has an infinite slope at zero, which times zero is not a number.
        return self.right + 0 * jnp.sqrt(jnp.maximum(self.broken, 0))


def odd_scene():
    field = Odd(*jnp.array([0.6, 0.3, 0.4, 0.0, 0.5]))
    return sg.Scene(sg.Group(odd=sg.Volume(field), cam=CAMERA), background=[1, 1, 1])


def verdicts(checks):
    return {check.path: check.verdict for check in checks}


@pytest.mark.slow
def test_every_kind_of_verdict():
    where = [f"odd.field.{name}" for name in ("right", "wrong", "lost", "broken", "unused")]
    checks = check_gradients(odd_scene(), CAMERA, LEVELS, where=where)
    assert verdicts(checks) == {
        "odd.field.right": "right",
        "odd.field.wrong": "wrong",
        "odd.field.lost": "wrong",
        "odd.field.broken": "not finite",
        "odd.field.unused": "zero",
    }
    by_path = {check.path: check for check in checks}
    assert by_path["odd.field.wrong"].error == pytest.approx(0.5, abs=1e-3)
    table = gradient_table(checks).splitlines()
    assert len(table) == 6 and table[2].endswith("wrong") and "5.0e-01" in table[2]


@pytest.mark.slow
@pytest.mark.parametrize("stop_gradient", [True, False])
def test_a_network_and_a_camera_are_right(stop_gradient):
    """Held or not, as the integrator takes its samples for constant or not."""
    net = sg.fields.MipNerfMLP(
        8, 2, view_width=4, encoding=sg.encodings.IntegratedPositional(0, 3), key=jax.random.key(0)
    )
    tree = sg.Group(net=sg.Volume(net), cam=CAMERA)
    scene = sg.Scene(tree, background=[1.0, 1.0, 1.0])
    levels = sg.Hierarchical((6, 6), stop_gradient=stop_gradient)
    found = verdicts(check_gradients(scene, "cam", levels, pixels=12))
    assert set(found.values()) <= {"right", "zero"}
    assert found["net.field.network.trunk.0.weight"] == found["cam.pose.delta"] == "right"


@pytest.mark.slow
def test_analytic_fields_under_transforms_are_right():
    """The toy scene's clouds share one box; boxes that coincide are a kink, so they are moved."""
    rng = np.random.default_rng(0)
    scene = jax.tree.map(lambda x: x + 1e-2 * rng.normal(size=x.shape), sg.diagnostics.toy_scene())
    checks = check_gradients(scene, CAMERA, LEVELS, pixels=24)
    assert {check.verdict for check in checks} <= {"right", "zero"} and len(checks) > 15


@pytest.mark.slow
def test_every_leaf_of_everything_is_right():
    """All shapes, shaders, lights, transforms and a field; the horizon is in the picture."""
    camera = sg.PerspectiveCamera.look_at([0, -7, 4], [0, 0, 1.2], [0, 0, 1], 1.0, 97, 71)
    found = verdicts(check_gradients(sg.diagnostics.gallery_scene(), camera))
    assert {path for path, verdict in found.items() if verdict == "zero"} == {
        "shapes.ring.shape.bounds.lower",  # only where the ring is looked for
        "shapes.ring.shape.bounds.upper",
    }
    assert set(found.values()) == {"right", "zero"} and len(found) > 65


def test_how_far_it_is():
    told = []
    where = ["odd.field.right", "odd.field.wrong"]
    check_gradients(
        odd_scene(), CAMERA, LEVELS, where=where, progress=lambda *so_far: told.append(so_far)
    )
    assert told == [(0, 2), (1, 2), (2, 2)]


class Folded(AbstractField):
    """Fog whose density has a kink where its number is zero."""

    number: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), jnp.zeros(3))

    def density(self, gaussian):
        return 0.5 + jnp.abs(self.number)


def test_anything_between_the_slopes_of_a_kink_is_right():
    """The derivative of an absolute value at zero, which JAX takes to be one."""
    scene = sg.Scene(sg.Group(fog=sg.Volume(Folded(jnp.array(0.0)))), background=[1, 1, 1])
    assert verdicts(check_gradients(scene, CAMERA, LEVELS))["fog.field.number"] != "wrong"


class Called(AbstractField):
    """Fog whose function is a leaf without a gradient, before one with a gradient."""

    function: Callable
    number: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), jnp.zeros(3))

    def density(self, gaussian):
        return self.function(self.number)


def test_a_function_among_the_leaves():
    scene = sg.Scene(sg.Group(fog=sg.Volume(Called(jnp.exp, jnp.array(0.3)))), background=[1, 1, 1])
    assert verdicts(check_gradients(scene, CAMERA, LEVELS))["fog.field.number"] == "right"


def test_precision_is_as_it_was():
    check_gradients(odd_scene(), CAMERA, LEVELS, where=["odd.field.right"])
    assert jnp.ones(1).dtype == jnp.float32


def test_a_path_that_matches_nothing():
    with pytest.raises(ValueError, match="odd.field.right"):
        check_gradients(odd_scene(), CAMERA, where=["odd.field.rihgt"])
