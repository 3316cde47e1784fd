"""Compiled programs: soon where they run seldom; forgotten before there are too many pieces."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import scenegraph as sg
from scenegraph import programs
from scenegraph.programs import _memory
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.7, 5, 4)
SCENE = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), [0.2, 0.5, 0.8])))


@pytest.fixture
def limit(monkeypatch):
    """Sets the system's limit; much has been compiled."""
    monkeypatch.setitem(_memory._compiled, "seconds", 5.0)
    monkeypatch.setitem(_memory._held, "pieces", 0)
    monkeypatch.setattr(_memory, "_count_pieces", lambda: 700)
    return lambda most: monkeypatch.setattr(_memory, "_most_pieces", lambda: most)


@pytest.fixture
def remembered():
    """Asks whether a program is still there."""
    program = jax.jit(lambda x: x + 1)
    program(1.0)
    return lambda: program._cache_size() == 1


@pytest.mark.parametrize(("most", "kept"), [(1_000, False), (2_000, True), (None, True)])
def test_a_picture_makes_room(limit, remembered, most, kept):
    limit(most)
    sg.render(SCENE, CAMERA)
    assert remembered() is kept


def test_what_compiling_took_is_given_back(limit, monkeypatch):
    given = []
    monkeypatch.setattr(_memory, "_of_c_library", lambda name: given.append)
    limit(None)
    for seconds in (5.0, 0.5):
        monkeypatch.setitem(_memory._compiled, "seconds", seconds)
        sg.render(SCENE, CAMERA)
    assert given == [0]


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_other_c_libraries_are_left_alone(monkeypatch, error):
    def library(name):
        raise error

    monkeypatch.setattr(_memory.ctypes, "CDLL", library)
    assert _memory._of_c_library.__wrapped__("malloc_trim") is None


_FAULTS = """
import resource, sys
import jax.numpy as jnp
from scenegraph.programs import _memory
assert _memory.keep_memory() is (sys.argv[1] == "kept")
# 40 MB: more than glibc keeps by itself. Each thread of XLA has to ask once.
add = lambda: (jnp.zeros(10_000_000) + 1).block_until_ready()
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def some():
    before = faults()
    for _ in range(5):
        add()
    return faults() - before
# On a busy machine, a thread may ask late.
print(min(some() for _ in range(8)))
"""


@pytest.mark.skipif(_memory._of_c_library("mallopt") is None, reason="a C library of another kind")
def test_freed_memory_is_kept_for_the_next_turn_unless_users_say_otherwise():
    clean = {name: x for name, x in os.environ.items() if not name.startswith(_memory._OWN)}
    faults = {}
    for how, own in (("kept", {}), ("given", {"MALLOC_TOP_PAD_": "0"})):
        command = [sys.executable, "-c", _FAULTS, how]
        faults[how] = int(subprocess.check_output(command, env=clean | own))
    assert faults["kept"] < 0.3 * faults["given"]


def test_what_others_hold_is_not_tried_again(limit, remembered, monkeypatch):
    limit(1_000)
    monkeypatch.setitem(_memory._held, "pieces", 650)
    sg.render(SCENE, CAMERA)
    assert remembered()


def test_nothing_is_counted_before_much_is_compiled(limit, remembered, monkeypatch):
    limit(1_000)
    monkeypatch.setitem(_memory._compiled, "seconds", 0.5)
    sg.render(SCENE, CAMERA)
    assert remembered()


def test_a_traced_picture_warns(limit, remembered):
    limit(1_000)
    with pytest.warns(UserWarning, match=r"700 of the 1,000 .* call `jax.clear_caches\(\)`"):
        # Of constants, in a function that is traced.
        jax.eval_shape(lambda x: x * sg.render(SCENE, CAMERA).rgb, jnp.ones(()))
    assert remembered()


def test_seconds_of_compiling_are_added_up(monkeypatch):
    monkeypatch.setitem(_memory._compiled, "seconds", 0.0)
    jax.jit(lambda x: jnp.sin(x) * 3)(jnp.ones(7))
    assert _memory._compiled["seconds"] > 0


def test_pieces_are_counted_where_the_system_says():
    if not _memory._MAPS.exists():
        pytest.skip("the system does not say which pieces of memory are mapped")
    assert 10 < _memory._count_pieces() < (_memory._most_pieces() or 10**9)


@pytest.mark.parametrize("options", [programs.FOR_A_FEW_RUNS, programs.FOR_SOME_RUNS])
def test_programs_that_are_compiled_soon_compute_the_same(options):
    @programs.quick_jit(options)
    def waves(x, *, power: int):
        return jnp.sin(x) ** power

    x = jnp.linspace(0.0, 3.0, 100)
    assert_close(waves(x, power=3), jnp.sin(x) ** 3)
    # Options cannot be chosen within another program.
    assert_close(
        jax.jit(jax.grad(lambda x: waves(x, power=2)))(0.3), 2 * jnp.sin(0.3) * jnp.cos(0.3)
    )


def test_options_that_a_compiler_does_not_know_are_left_out():
    options = {"xla_backend_optimization_level": 0, "xla_of_another_version": 1}
    assert programs.known_options(options) == {"xla_backend_optimization_level": 0}
    assert programs.QuickProgram(jnp.cos, options)(jnp.zeros(())) == 1


def test_options_with_impossible_values_are_errors():
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_backend_optimization_level"):
        programs.known_options({"xla_backend_optimization_level": "none"})
