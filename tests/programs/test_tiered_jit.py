"""`tiered_jit` computes what `filter_jit` does, from the first call on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.programs import _options, _tiers, expect_calls
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.8, 12, 10)


def scene():
    """So many things that they are found through lists."""
    draw = np.random.default_rng(0)
    ball = lambda: sg.Sphere(draw.uniform(-1, 1, 3), draw.uniform(0.2, 0.4))
    balls = {f"b{i}": sg.Surface(ball(), sg.Lambert(draw.uniform(0.2, 0.9, 3))) for i in range(12)}
    lamp = sg.PointLight([1.0, -2.0, 4.0], [30.0] * 3)
    return sg.Scene(sg.Group(**balls, lamp=lamp))


def loss(scene, camera, *, power):
    return jnp.mean(sg.render(scene, camera).rgb ** power), "of a picture"


def test_a_gradient_is_the_same_soon_and_optimised():
    gradient = eqx.filter_value_and_grad(loss, has_aux=True)
    tiered = sg.tiered_jit(gradient)
    (value, word), slopes = tiered(scene(), CAMERA, power=2)
    with expect_calls(100):
        (again, _), optimised = tiered(scene(), CAMERA, power=2)
    assert word == "of a picture"
    assert_close(value, again, 1e-5)
    for own, its in zip(*map(jax.tree.leaves, (slopes, optimised)), strict=True):
        assert_close(own, its, 1e-4, 1e-7)
    assert np.abs(slopes["b3.shape"].center).max() > 1e-4


def test_many_calls_are_optimised(monkeypatch):
    now = iter(map(float, range(100)))
    monkeypatch.setattr(_tiers.time, "perf_counter", lambda: next(now))
    traced = []
    double = sg.tiered_jit(lambda x: traced.append(x) or 2 * x)
    for i in range(6):
        assert double(jnp.asarray(i)) == 2 * i
    # Calls that take no longer than the first: it had nothing to compile.
    assert len(traced) == 2


@pytest.mark.parametrize(("most", "emitters"), [(10, False), (10**6, None)])
def test_long_functions_are_optimised_without_newer_emitters(monkeypatch, most, emitters):
    monkeypatch.setattr(_options, "_LONG", most)
    used, x = [], jnp.arange(3.0)
    program = lambda function, options: used.append(options) or function
    monkeypatch.setattr(_tiers, "QuickProgram", program)
    one = lambda y: jnp.sin(y) + jnp.cos(y) * jnp.tanh(y * 2)
    tiered = sg.tiered_jit(lambda x: jax.lax.map(one, x) ** 3 / 2 - x.sum())
    first = tiered(x)
    with expect_calls(100):
        assert_close(tiered(x), first)
    assert [options.get("xla_cpu_use_fusion_emitters") for options in used] == [emitters]


def test_traced_functions_are_part_of_the_program_around():
    double = sg.tiered_jit(lambda x: 2 * x)
    assert_close(jax.jit(jax.grad(lambda x: double(x) ** 2))(3.0), 24.0)
    assert_close(jax.vmap(double)(jnp.arange(3.0)), 2 * jnp.arange(3.0))


def test_without_jit_all_is_computed_step_by_step():
    seen = []
    double = sg.tiered_jit(lambda x: seen.append(float(x)) or 2 * x)
    with jax.disable_jit():
        assert double(jnp.asarray(3.0)) == 6
    assert seen == [3.0]


def test_numbers_that_are_none_are_found():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        sg.tiered_jit(jnp.log)(jnp.asarray(-1.0))


def test_names_and_text_stay():
    def shade(x):
        """Shades."""
        return x

    tiered = sg.tiered_jit(shade)
    assert (tiered.__name__, tiered.__doc__) == ("shade", "Shades.")


def test_arguments_without_a_hash_are_errors():
    with pytest.raises(TypeError, match="unhashable"):
        sg.tiered_jit(lambda x, y: x)(jnp.zeros(2), bytearray(b"abc"))
