"""Turns that need nothing of each other are taken by several threads."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core.primitives import add_jaxvals_p

import scenegraph as sg
from scenegraph.programs import (
    _pieces,
    _threads,
    _turns,
    expect_calls,
    ProgramInPieces,
    TieredFunction,
)
from scenegraph.programs._pieces import AT_SHARED_TURNS, shares_turns
from scenegraph.programs._threads import share_out
from scenegraph.programs._traced import kind_of, known_of
from scenegraph.rendering import _render
from scenegraph.rowwise import map_blocks
from support.helpers import assert_close


X = jnp.linspace(0.1, 2.0, 12).reshape(4, 3)


@pytest.fixture
def two(monkeypatch):
    """Takes two turns at a time, however many cores there are."""
    monkeypatch.setattr(_threads, "count_threads", lambda: 2)
    _threads._pool.cache_clear()
    yield
    _threads._pool().shutdown()
    _threads._pool.cache_clear()


@pytest.fixture
def shared(monkeypatch, two):
    """Shares out the turns of loops however small they are, and notes how many."""
    counts = []

    def note(turn, numbers):
        numbers = list(numbers)
        counts.append(len(numbers))
        return share_out(turn, numbers)

    monkeypatch.setattr(_pieces, "_FEWEST", 0)
    monkeypatch.setattr(_turns, "share_out", note)
    return counts


def at_turns(function):
    return ProgramInPieces(function, {}, {}, AT_SHARED_TURNS)


def test_turns_are_taken_at_the_same_time_and_come_in_order(two):
    meet = threading.Barrier(2, timeout=60)

    def turn(number):
        meet.wait()
        return number, threading.get_ident()

    results = list(share_out(turn, range(8)))
    assert [number for number, _ in results] == list(range(8))
    assert len({thread for _, thread in results}) == 2


def test_turns_within_turns_are_taken_by_the_same_thread(two):
    def inner(_):
        return threading.get_ident()

    for own, others in share_out(lambda _: (inner(0), list(share_out(inner, range(3)))), range(4)):
        assert others == [own] * 3


def test_one_core_takes_turns_by_itself(monkeypatch):
    monkeypatch.setattr(_threads, "count_threads", lambda: 1)
    assert set(share_out(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_errors_of_a_turn_are_raised(two):
    def turn(number):
        if number == 2:
            raise ValueError("turn 2")
        return number

    with pytest.raises(ValueError, match="turn 2"):
        list(share_out(turn, range(5)))
    assert list(share_out(turn, range(2))) == [0, 1]


def chunks(y, x):
    """Rows of a loop of independent turns, under `grad` computed again."""
    row = lambda row: jnp.sin(row * y) / (1 + jnp.sum(row) ** 2)
    return jax.lax.map(jax.checkpoint(row), x)


def loss(tree):
    scale, x = tree
    return jnp.sum(chunks(jnp.cos(scale), x) ** 2)


def test_rows_are_those_of_the_loop(shared):
    function = lambda x: jnp.sum(chunks(jnp.tanh(x[0]), 2 * x), axis=0)
    assert_close(at_turns(function)(X), jax.jit(function)(X), 1e-6)
    assert shared == [4]


def test_gradients_sum_over_turns(shared):
    """What a gradient's loop carries are sums alone, so that its turns are independent."""
    scale = jnp.array([0.5, 1.0, 2.0])
    found, expected = at_turns(jax.grad(loss))((scale, X)), jax.grad(loss)((scale, X))
    for own, its in zip(found, expected, strict=True):
        assert_close(own, its, 1e-5)
    assert shared == [4] * len(shared) and shared


def test_sums_begin_where_they_are_said_to(shared):
    turn = lambda carry, row: (add(carry, jnp.exp(row)), row * 2)
    function = lambda start, x: jax.lax.scan(turn, start, x, reverse=True)
    start = jnp.array([1.0, -2.0, 3.0])
    total, rows = at_turns(function)(start, X)
    assert_close(total, start + jnp.exp(X).sum(0), 1e-6)
    assert_close(rows, 2 * X)
    assert_close(start, np.array([1.0, -2.0, 3.0]))  # It is not written to.
    assert shared == [4]


add = add_jaxvals_p.bind
CARRIED = {
    "read": lambda c, x: (add(c, c * x), c),
    "returned": lambda c, x: (add(c, x), c),
    "twice": lambda c, x: (add(c, c), x),
    "sum returned": lambda c, x: 2 * (add(c, x),),
    "replaced": lambda c, x: (jnp.sin(x), x),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_turns_carry_otherwise_is_taken_in_turn(shared, name):
    function = lambda x: jax.lax.scan(CARRIED[name], x[0], x)
    assert not any(shares_turns(x, AT_SHARED_TURNS) for x in jax.make_jaxpr(function)(X).eqns)
    for own, its in zip(at_turns(function)(X), jax.jit(function)(X), strict=True):
        assert_close(own, its, 1e-6)
    assert shared == []


def test_blocks_of_which_some_are_computed(shared):
    def function(x, count):
        return map_blocks(lambda y, row: jnp.sin(row) * y, jnp.float32(2), x, count)

    for count in (0, 1, 3):
        result = at_turns(function)(X, jnp.int32(count))
        assert_close(result, jnp.where(jnp.arange(4)[:, None] < count, 2 * jnp.sin(X), 0), 1e-6)
    assert shared == [0, 1, 3]


def test_loops_of_little_are_not_shared():
    (loop,) = [x for x in jax.make_jaxpr(chunks)(X[0], X).eqns if x.primitive is jax.lax.scan_p]
    assert not shares_turns(loop, AT_SHARED_TURNS)


def test_later_calls_share_turns_if_there_are_any(shared):
    program = TieredFunction(jax.grad(loss))
    expected = jax.grad(loss)((X[0], X))
    with expect_calls(100):
        for _ in range(2):
            assert_close(program((X[0], X))[1], expected[1], 1e-5)
        assert len(shared) >= 2
        # The equations are needed no more.
        assert not known_of(program._traced, kind_of((((X[0], X),), {})))
        shared.clear()
        whole = TieredFunction(jnp.sin)
        assert_close(whole(X), jnp.sin(X))
    assert shared == []


def test_pictures_of_many_things_are_shared(two, monkeypatch):
    """The same picture, by threads and by one program in a traced function."""
    spheres = [sg.Sphere([0.5 * (i % 4) - 1, 0, 0.5 * (i // 4) - 1], 0.3) for i in range(16)]
    balls = {f"ball{i}": sg.Surface(x, sg.Constant([1.0, 0.5, 0.2])) for i, x in enumerate(spheres)}
    scene = sg.Scene(sg.Group(**balls, lamp=sg.PointLight([0, -4, 2], [30.0] * 3)))
    eye = sg.PerspectiveCamera.look_at([0, -5, 0], [0, 0, 0], [0, 0, 1], 0.6, 96, 88)
    counts = []

    def note(turn, numbers):
        counts.append(len(list(numbers)))
        return share_out(turn, numbers)

    monkeypatch.setattr(_turns, "share_out", note)
    monkeypatch.setattr(_render, "count_threads", lambda: 2)
    with expect_calls(100):
        image = sg.render(scene, eye)
    assert counts == [2]  # 8,448 rays, by twice 4,096 at most.
    traced = eqx.filter_jit(lambda s: sg.render(s, eye))(scene)
    np.testing.assert_allclose(image.rgb, traced.rgb, atol=1e-5)
    np.testing.assert_allclose(image.alpha, traced.alpha, atol=1e-5)
