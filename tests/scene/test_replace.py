"""Values put into a scene by path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


def scene():
    eye = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.7, 8, 6)
    floor = sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.4, "white", "black")))
    moved = sg.Transformed(sg.Surface(sg.Sphere(), "red"), sg.Similarity([1.0, 0.0, 0.0]))
    return sg.Scene(sg.Group(cam_a=eye, cam_b=eye, floor=floor, ball=moved))


def test_values_are_converted_and_the_rest_is_as_it_was():
    before = scene()
    after = sg.replace(
        before,
        {
            "floor.shader.albedo.scale": 2,
            "cam*.focal": np.float64(90.0),
            "ball.shader.color": "blue",
            "ball.opacity": 0.5,
            "ball.transform.translation": [1, 2, 3],
        },
    )
    assert_close(after["floor.shader.albedo.scale"], 2.0, 0)
    assert after["cam_a.focal"].dtype == jnp.float32 and not after["cam_b.focal"].weak_type
    assert_close(jnp.stack([after["cam_a.focal"], after["cam_b.focal"]]), [90.0, 90.0], 0)
    assert_close(after["ball.shader.color"], [0.0, 0.0, 1.0], 0)
    assert_close(after["ball.transform.translation"], [1.0, 2.0, 3.0], 0)
    assert isinstance(after["ball.opacity"], type(before["ball.opacity"]))  # still frozen
    assert after["floor.shape"] is before["floor.shape"]
    assert jax.tree.structure(after) == jax.tree.structure(before)


def test_nodes_are_replaced_too():
    after = sg.replace(scene(), {"floor.shader": sg.Lambert("green"), "ball.shape": sg.Box()})
    assert isinstance(after["floor.shader"], sg.Lambert) and isinstance(after["ball.shape"], sg.Box)


def test_values_may_be_traced():
    size = lambda x: sg.replace(scene(), {"**.radius": x})["ball.shape.radius"]
    assert_close(jax.jit(jax.grad(lambda x: size(x) ** 2))(3.0), 6.0, 1e-6)


WRONG = [
    ({"bal.shape.radius": 1.0}, ValueError, "nearest are.*ball.shape"),
    ({"ball.shape.radius": [1.0, 2.0]}, TypeError, r"'ball.shape.radius'.*float32\[2\]"),
    ({"ball.shape.radius": "big"}, TypeError, "'ball.shape.radius' cannot be 'big'"),
    ({"ball.shape.radius": -1.0}, ValueError, "'ball.shape'.*positive"),
    ({"ball.shader.color": "no color"}, Exception, "'ball.shader.color'"),
]


@pytest.mark.parametrize(("values", "kind", "told"), WRONG)
def test_what_does_not_fit_is_refused_by_path(values, kind, told):
    with pytest.raises(kind, match=told):
        sg.replace(scene(), values)


def test_tied_leaves_are_refused():
    tied = sg.tie(scene(), ["cam_a.focal", "cam_b.focal"])
    with pytest.raises(ValueError, match="'cam_b.focal' is tied to 'cam_a.focal'"):
        sg.replace(tied, {"cam_b.focal": 3.0})
    assert_close(sg.replace(tied, {"cam_a.focal": 3.0})["cam_a.focal"], 3.0, 0)
