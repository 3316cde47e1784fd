"""JAX's own tools around and inside of pictures: callbacks, checkify, types, sharding."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import scenegraph as sg
from support.helpers import assert_close


VIEW = sg.PerspectiveCamera.look_at([0, -3.5, 1.6], [0, 0, 0.4], [0, 0, 1], 0.7, 8, 6)
PIXELS = 48


def ball(shader, shape=None):
    shape = sg.Sphere([0, 0, 0.4], 0.5) if shape is None else shape
    return sg.Scene(sg.Group(ball=sg.Surface(shape, shader)))


class Loud(sg.shaders.AbstractShader):
    """A red shader that tells a list of the distances at which it is asked."""

    tell: object = eqx.field(static=True)

    def __call__(self, hit, view, lights):
        jax.debug.callback(self.tell, hit.t)
        return jnp.array([1.0, 0.0, 0.0])


def test_callbacks_in_shaders_run_once_a_pixel():
    seen = []
    tell = lambda t: seen.extend(np.atleast_1d(np.asarray(t)).tolist())
    loud = ball(Loud(tell))
    for _ in range(2):
        seen.clear()
        image = sg.render(loud, VIEW)
        jax.effects_barrier()
        assert len(seen) == PIXELS
        wanted = sg.render(ball(sg.Constant([1.0, 0.0, 0.0])), VIEW)
        assert_close(image.rgb, wanted.rgb, 1e-6)


def test_callbacks_in_shaders_run_in_gradients_and_jit():
    seen = []
    loud = lambda x: ball(Loud(lambda t: seen.append(1)), sg.Sphere([x, 0, 0.4], 0.5))
    total = lambda x: jnp.sum(sg.render(loud(x), VIEW).alpha[:, :4])
    slope = jax.jit(jax.grad(total))(0.1)
    jax.effects_barrier()
    assert len(seen) >= PIXELS
    quiet = lambda x: ball(sg.Constant([1.0, 0, 0]), sg.Sphere([x, 0, 0.4], 0.5))
    assert_close(
        slope, jax.grad(lambda x: jnp.sum(sg.render(quiet(x), VIEW).alpha[:, :4]))(0.1), 1e-4
    )


def test_callbacks_in_shapes_run():
    seen = []

    class Egg(sg.shapes.AbstractSmoothShape):
        ball: sg.Sphere
        is_convex = True
        has_uv = True

        def cross(self, ray):
            jax.debug.callback(lambda t: seen.append(1), ray.near)
            return self.ball.cross(ray)

        def normal_at(self, point):
            return self.ball.normal_at(point)

        def uv_at(self, point):
            return self.ball.uv_at(point)

    sg.render(ball([1.0, 0, 0], Egg(sg.Sphere([0, 0, 0.4], 0.5))), VIEW)
    jax.effects_barrier()
    assert len(seen) >= PIXELS


class Bad(sg.shaders.AbstractShader):
    def __call__(self, hit, view, lights):
        return jnp.log(-1 - jnp.abs(hit.normal))


class Strict(sg.shaders.AbstractShader):
    """A shader with a check of its own."""

    def __call__(self, hit, view, lights):
        checkify.check(hit.t < 0, "the shader was asked")
        return jnp.zeros(3)


def error_of(scene, errors):
    draw = checkify.checkify(jax.jit(lambda: sg.render(scene, VIEW).rgb), errors=errors)
    return draw()[0].get()


def test_checkify_sees_what_is_inside():
    assert "nan" in str(error_of(ball(Bad()), checkify.float_checks))
    assert error_of(ball(sg.Constant([1.0, 0, 0])), checkify.float_checks) is None
    assert "the shader was asked" in str(error_of(ball(Strict()), checkify.user_checks))


@pytest.mark.parametrize("samples", [1, 4])
def test_a_scene_of_single_precision_stays_so_under_x64(samples):
    """Of shapes, shaders, lights, media and skies; nothing is compiled."""
    even = np.ones((8, 16, 3), np.float32)
    with jax.enable_x64(True):
        sky = sg.EnvironmentLight(even, samples=8)
        turn = sg.Pose.look_at([0, 0, 0.0], [1, 0, 0.0], [0, 0, 1.0])
        every = sg.Group(
            ball=sg.Transformed(sg.Surface(sg.Sphere(), sg.GGX([0.5] * 3, 0.1, 0.4)), turn),
            box=sg.Surface(sg.Box([1.0] * 3, [2.0] * 3), sg.Lambert(sg.Checker(0.3))),
            card=sg.Surface(sg.Rectangle(), sg.ImageTexture(even)),
            fog=sg.Volume(sg.fields.GaussianBlob([0.0, 0, 2], 0.4, 5.0, [1.0, 0, 0])),
            sun=sg.DirectionalLight([0.0, 0.3, -1.0], [1.0] * 3),
            lamp=sg.PointLight([0.0, -1.0, 3.0], [9.0] * 3),
            sky=sky,
        )
        cast = lambda tree: jax.tree.map(
            lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, tree
        )
        draw = functools.partial(sg.render, samples_per_pixel=samples)
        image = eqx.filter_eval_shape(draw, cast(sg.Scene(every, background=sky)), cast(VIEW))
        assert {x.dtype for x in (image.rgb, image.alpha, image.depth)} == {np.dtype("float32")}
        whole = eqx.filter_eval_shape(draw, sg.Scene(every, background=sky), cast(VIEW))
        assert whole.rgb.dtype == np.float64


def test_rays_of_single_precision_at_a_mesh_of_double():
    square = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    with jax.enable_x64(True):
        mesh = sg.TriangleMesh(square, [[0, 1, 2], [0, 2, 3]], smooth=False)
        scene = sg.Scene(sg.Group(m=sg.Surface(mesh, [1.0] * 3)))
        down = jnp.array([[0, 0, -1.0]], jnp.float32)
        hits = sg.cast_rays(scene, jnp.array([[0.1, 0.2, 2.0]], jnp.float32), down)
        assert_close(hits.t, [2.0], 1e-6)


@pytest.mark.skipif(jax.device_count() < 2, reason="needs several devices")
def test_a_batch_over_an_explicit_mesh_is_shared():
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Explicit,))
    at = jnp.zeros((4, 3))
    draw = jax.jit(jax.vmap(lambda a: sg.render(ball([1.0, 0, 0], sg.Sphere(a, 0.5)), VIEW).rgb))
    shared = draw(jax.device_put(at, NamedSharding(mesh, PartitionSpec("d"))))
    assert len(shared.sharding.device_set) == 2
    assert_close(shared, draw(at), 1e-6)
