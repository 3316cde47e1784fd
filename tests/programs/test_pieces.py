"""Programs in pieces compute what they do as a whole."""

import concurrent.futures
import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.programs import (
    _many_arrays,
    _pieces,
    _quick,
    FOR_A_FEW_RUNS,
    kind_of,
    ProgramInPieces,
    quick_jit,
    say_times,
)
from scenegraph.programs._compiled import Compiled
from scenegraph.programs._pieces import Cut
from scenegraph.programs._work import count_equations, count_outside_of_kernels, estimate_work
from scenegraph.rows import map_rows
from scenegraph.rowwise import map_blocks, sum_blocks
from support.helpers import assert_close


X = jnp.linspace(0.1, 2.0, 12).reshape(4, 3)


# Cuts programs of more than three equations, and all loops.
SMALL = Cut(3, 64, 2, shared=False, many=8)


@pytest.fixture
def compiled(monkeypatch):
    """What is compiled: weights and options."""
    found, compile = [], Compiled.compile

    def record(self, pool, options):
        found.append((self.weight, options["xla_backend_optimization_level"]))
        compile(self, pool, options)

    monkeypatch.setattr(Compiled, "compile", record)
    return found


def straight(x):
    y = jnp.sin(x) * 2
    z = jnp.cos(y) + x.sum()
    return y * z - jnp.exp(-x), z


def scanned(x, reverse=False):
    def turn(carry, row):
        total, count = carry
        return (total + jnp.sin(row) * total, count + 1), (total.sum(), row * count)

    start = jnp.ones(3), jnp.zeros((), jnp.int32)
    (total, count), rows = jax.lax.scan(turn, start, x, reverse=reverse)
    return total, count, rows


def without_carry(x):
    return jax.lax.map(lambda row: (jnp.tanh(row) * row, 2.0, x.sum() + row), x)


def nested(x):
    inner = jax.jit(lambda y: jnp.sin(y) + jnp.cos(y * 2) - jnp.tanh(y))
    outer = jax.checkpoint(lambda y: inner(y) * inner(y + 1) + jnp.sqrt(y**2 + 1))
    return jax.lax.map(lambda row: outer(row) + inner(row).sum(), x)


def blocks(x, count=3, of=map_blocks):
    def one(shared, block):
        y = jnp.sin(block * shared) + block
        return jnp.tanh(y).sum() * y, y.sum()

    return of(one, x.mean(), x, jnp.asarray(count))


def drawn(x):
    def turn(key, row):
        key, own = jax.random.split(key)
        return key, row + jax.random.normal(own, row.shape)

    key, rows = jax.lax.scan(turn, jax.random.key(3), x)
    return jax.random.uniform(key, (2,)), rows


def many_rows(x):
    rows = [x[i % 4] * i for i in range(11)]
    whole = jnp.stack(rows), jnp.stack(rows, axis=1)
    parts = jnp.unstack(jnp.sin(whole[1]), axis=1)
    return *whole, parts[10] * parts[3], parts[7].astype(jnp.int32)


FUNCTIONS = {
    "straight": straight,
    "scanned": scanned,
    "in reverse": lambda x: scanned(x, reverse=True),
    "without carry": without_carry,
    "nested": nested,
    "blocks": blocks,
    "no block": lambda x: blocks(x, 0),
    "all blocks": lambda x: blocks(x, 4),
    "sums of blocks": lambda x: blocks(x, 3, sum_blocks),
    "random": drawn,
    "constants": lambda x: (x @ jnp.asarray(np.eye(3)) + np.arange(3.0), jnp.ones(2), x),
    "gradient": jax.grad(lambda x: blocks(nested(x))[0].sum() + scanned(x)[0].sum()),
    "of no array": lambda x: jnp.arange(3) + 1,
    "many rows": many_rows,
    "gradient of many rows": jax.grad(lambda x: many_rows(x)[1].sum()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pieces_compute_what_the_whole_does(compiled, name):
    function = FUNCTIONS[name]
    results = ProgramInPieces(function, cut=SMALL)(X)
    expected = jax.jit(function)(X)
    assert jax.tree.structure(results) == jax.tree.structure(expected)
    for own, its in zip(*map(jax.tree.leaves, (results, expected)), strict=True):
        assert own.shape == its.shape and own.dtype == its.dtype
        assert_close(own, its, 1e-5)
    assert name in ("of no array", "constants") or len(compiled) > 1


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed):
    """Of every size of pieces: chains of operations, any of which uses any result before."""
    rng = np.random.default_rng(seed)
    cut = SMALL._replace(size=int(rng.integers(1, 12)))
    operations = [jnp.sin, jnp.tanh, nested, lambda x: scanned(x)[2][1], lambda x: blocks(x)[0]]
    choices = [(rng.integers(len(operations)), *rng.integers(0, i + 1, 2)) for i in range(12)]

    def function(x):
        values = [x]
        for which, first, second in choices:
            values.append(jnp.tanh(operations[which](values[first]) - values[second]))
        return values[1::3]

    for own, its in zip(ProgramInPieces(function, cut=cut)(X), jax.jit(function)(X), strict=True):
        assert_close(own, its, 1e-4)


def test_loops_of_one_large_piece_stay_whole(compiled):
    """Taking their turns from outside would gain nothing."""
    change = lambda i, y: jnp.sin(y) + jnp.cos(y) - jnp.tanh(y) * i
    turn = lambda row: jax.lax.fori_loop(0, row.sum().astype(int), change, row)
    function = lambda x: jax.lax.map(turn, x)
    program = ProgramInPieces(function, cut=SMALL._replace(part=0.5))
    assert_close(program(X), jax.jit(function)(X))
    assert len(compiled) == 1


def test_arguments_that_are_no_arrays_choose_the_program():
    def function(x, *, how, scale):
        return {"power": x**how, "name": f"to {how}", "scaled": x * scale}

    program = ProgramInPieces(function, cut=SMALL)
    for how in (2, 3):
        results = program(X, how=how, scale=np.float32(2))
        assert results["name"] == f"to {how}"
        assert_close(results["power"], X**how)
        assert_close(results["scaled"], 2 * X)


def test_a_kind_is_compiled_once_and_forgotten_with_others(compiled):
    program = ProgramInPieces(straight)
    for x in (X, 2 * X, X[:2], 3 * X[:2]):
        assert_close(program(x)[0], straight(x)[0], 1e-5)
    assert len(compiled) == 2
    with jax.enable_x64(True):
        double = program(np.asarray(X, float))[0]
        assert double.dtype == np.float64 and len(compiled) == 3
    thread = threading.Thread(target=program, args=(X,))
    thread.start()
    thread.join()
    assert len(compiled) == 3
    jax.clear_caches()
    program(X)
    assert len(compiled) == 4


def test_errors_of_tracing_are_raised_and_tried_again():
    program = ProgramInPieces(lambda x: x @ x)
    for _ in range(2):
        with pytest.raises(TypeError, match="contracting"):
            program(X)
    assert_close(program(X[:3]), X[:3] @ X[:3], 1e-5)


def test_errors_of_compiling_are_raised(monkeypatch):
    monkeypatch.setattr(_quick, "known_options", lambda options: {"xla_of_no_version": 1})
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_of_no_version"):
        ProgramInPieces(straight)(X)


def loop(x, things):
    with say_times(things):
        return jax.lax.while_loop(lambda y: y.sum() < 9, lambda y: jnp.cos(y) + y, x)


def work(function):
    jaxpr = jax.make_jaxpr(function)(X).jaxpr
    return [(count_equations(x), estimate_work(x)) for x in jaxpr.eqns]


def test_work_is_what_loops_say_they_do():
    ((weight, plain),) = work(lambda x: jax.lax.while_loop(lambda y: y.sum() < 9, jnp.cos, x))
    assert weight == plain == 4
    ((weight, own),) = work(lambda x: loop(x, 1000))
    assert own == 1000 * weight
    # Within a scan, as often as that turns; within another function, as much as there.
    assert work(jax.jit(lambda x: loop(x, 10))) == [(1 + weight, 1 + 10 * weight)]
    ((_, turns),) = work(lambda x: jax.lax.map(lambda row: loop(row, 10), x))
    assert turns == 1 + 4 * 10 * weight


def test_equations_of_rows_are_kernels():
    row = lambda x: jnp.sin(x) + jnp.cos(x) * jnp.tanh(x)
    loop = lambda x: jax.lax.map(lambda y: map_rows(lambda _, z: row(z), None, y[None]), x)
    (rows,) = jax.make_jaxpr(loop)(X).jaxpr.eqns
    assert (count_equations(rows), count_outside_of_kernels(rows)) == (8, 3)


@pytest.mark.parametrize(("things", "level"), [(10, 0), (10**8, 1)])
def test_what_computes_much_is_optimised(compiled, things, level):
    function = lambda x: straight(loop(jnp.tanh(x), things))
    assert_close(ProgramInPieces(function, cut=SMALL)(X)[0], jax.jit(function)(X)[0], 1e-5)
    assert [own for weight, own in compiled if weight == 5] == [level]
    assert len(compiled) > 2 and {0} == {own for weight, own in compiled if weight != 5}


def test_functions_for_a_few_runs_are_in_pieces(compiled):
    double = quick_jit(FOR_A_FEW_RUNS)(lambda x: 2 * x)
    assert_close(double(X), 2 * X)
    assert len(compiled) == 1
    assert_close(jax.grad(lambda x: double(x).sum())(X), 2 * jnp.ones_like(X))


def test_kinds_are_structures_types_and_what_is_no_array():
    tree = lambda x, name: {"x": x, "name": name}
    assert kind_of(tree(X, "a")) == kind_of(tree(2 * X, "a"))
    others = [tree(X[:1], "a"), tree(X.astype(int), "a"), tree(X, "b"), [X, "a"]]
    assert all(kind_of(tree(X, "a")) != kind_of(other) for other in others)
    # Numbers that are equal, of other types: the results have other types, too.
    power = ProgramInPieces(lambda x, y, n: (x * y) ** n)
    half, weak = jnp.ones(2, jnp.bfloat16), jnp.asarray(1.0)
    for y, n in [(weak, 2), (weak.astype(jnp.float32), 2), (weak, True)]:
        assert power(half, y, n).dtype == ((half * y) ** n).dtype
    whole = jnp.arange(3)
    for n in (2, 2.0):
        assert power(whole, whole, n).dtype == (whole**n).dtype


@pytest.mark.parametrize("count", [9, 20, 21])
@pytest.mark.parametrize("axis", [0, 1])
def test_many_arrays_are_stacked_and_taken_apart_some_at_a_time(monkeypatch, count, axis):
    seen, compile = [], Compiled.compile
    note = lambda self, *how: (seen.append(self._like), compile(self, *how))
    monkeypatch.setattr(Compiled, "compile", note)
    monkeypatch.setattr(_many_arrays, "_AT_ONCE", 7)

    def twice(*rows):
        whole = jnp.cos(jnp.stack(rows, axis) + 1)
        return [2 * row for row in jnp.unstack(whole, axis=axis)][-2:]

    rows = [jnp.arange(3.0) + i for i in range(count)]
    results = ProgramInPieces(twice, cut=SMALL)(*rows)
    assert_close(jnp.stack(results), 2 * jnp.cos(jnp.stack(rows[-2:]) + 1))
    assert max(map(len, seen)) == 7
    # Some are stacked by one program, all of them joined by another.
    assert sum(len(like) == 7 for like in seen) == 1
    assert sum(like[0].shape in ((7, 3), (3, 7)) for like in seen) == 1


def test_many_numbers_are_made_some_at_a_time_each_in_its_own_memory(monkeypatch):
    made, repeat = [], _many_arrays._repeat
    monkeypatch.setattr(_many_arrays, "_repeat", lambda x: (made.append(x.item()), repeat(x))[1])
    monkeypatch.setattr(_many_arrays, "_AT_ONCE", 7)
    values = [0.0, jnp.nan, 1.0, jnp.nan] * 10 + [2.5]
    device = jax.devices()[-1]
    numbers = lambda x: [x, *(jnp.asarray(y, x.dtype) for y in values)]
    results = ProgramInPieces(numbers)(jax.device_put(X, device))
    np.testing.assert_array_equal(results[1:], values)
    np.testing.assert_array_equal(made, [0.0, np.nan, 1.0])
    # An update that writes to its arguments must not be given one array twice.
    assert len({x.unsafe_buffer_pointer() for x in results}) == len(results)
    assert {x.dtype for x in results} == {X.dtype}


def test_arrays_taken_apart_stay_on_their_device():
    device = jax.devices()[-1]
    rows = [jax.device_put(jnp.arange(3.0) + i, device) for i in range(20)]
    split = ProgramInPieces(lambda *x: jnp.unstack(jnp.stack(x)), cut=SMALL)
    assert all(x.devices() == {device} for x in split(*rows))


def test_turns_in_threads_know_of_double_precision():
    """Numbers among operands, and places of arrays, are made where a turn is taken."""
    part = jax.jit(lambda x, y: jnp.sin(x * y) + jnp.cos(x - y) - jnp.tanh(x + y) * y)

    def turn(row):
        rows = jnp.stack([row * i for i in range(11)])
        return part(row, 2.5) + jnp.sin(rows[3]) * jnp.cos(rows[7])

    function = lambda x: jax.lax.map(turn, x)
    with jax.enable_x64(True):
        x = np.linspace(0.1, 2.0, 12).reshape(4, 3)
        result = ProgramInPieces(function, cut=SMALL)(x)
        assert result.dtype == np.float64
        assert_close(result, jax.jit(function)(x), 1e-12)


def test_equal_parts_are_compiled_once(compiled):
    by = lambda n: jax.jit(lambda x: jnp.sin(x) * jnp.cos(x) + jnp.tanh(x) * jnp.exp(-n * x))
    part, other, counts = by(1), by(2), []
    for function in (part, lambda x: part(part(part(x))), lambda x: other(part(x))):
        begun = len(compiled)
        assert_close(ProgramInPieces(function, cut=SMALL)(X), function(X))
        counts.append(len(compiled) - begun)
    # Of two parts that differ by a number, some pieces are the same.
    assert counts[0] == counts[1] < counts[2] < 2 * counts[0]


@jax.custom_jvp
def halved(x):
    return jnp.sin(x) / 2


halved.defjvp(lambda x, t: (halved(*x), jnp.cos(x[0]) * t[0] / 2))


def test_large_functions_that_are_copies_are_compiled_once(compiled, monkeypatch):
    monkeypatch.setattr(_pieces, "_OF_ITS_OWN", 10)

    def inner(x, last=halved):
        for _ in range(5):
            x = last(jnp.cos(halved(x)) + x)
        return x

    # Functions of their own, of equal equations, but for their derivatives; and one that differs.
    copies = [jax.jit(lambda x: inner(x)) for _ in range(3)]
    other = jax.jit(lambda x: inner(x, jnp.tanh))

    def program(x):
        x = copies[0](x) * 2
        return other(copies[1](x) - 1) + copies[2](x)

    assert_close(ProgramInPieces(program)(X), program(X))
    large = [weight for weight, _ in compiled if weight > 10]
    assert len(large) == 2


def test_only_what_is_computed_often_is_optimised(compiled, monkeypatch):
    monkeypatch.setattr(_pieces, "_OF_ITS_OWN", 3)

    def search(x):
        with say_times(10**8):
            step = lambda carry: (carry[0] + 1, jnp.sin(carry[1]) * 0.9)
            return jax.lax.while_loop(lambda carry: carry[0] < 3, step, (0, x))[1]

    around = lambda x: jnp.exp(search(jnp.cos(x) + 1)) - x
    assert_close(ProgramInPieces(around)(X), around(X))
    # The longest alone.
    assert [level for _, level in sorted(compiled)] == [0, 0, 1]


def test_what_needs_no_loop_joins_what_is_before_it(compiled):
    """Two loops, with or without an operation between them that needs neither."""
    loop = lambda x: jax.lax.map(lambda row: jnp.sin(jnp.cos(jnp.tan(row * row))), x)
    counts = []
    for between in (lambda x: x, lambda x: x * 2):

        def function(x, between=between):
            first, other = loop(x + 1), between(x)
            return first + loop(x) + other

        compiled.clear()
        assert_close(ProgramInPieces(function, cut=SMALL)(X), function(X), 1e-6)
        counts.append(len(compiled))
    assert counts[0] == counts[1]


class Pool(concurrent.futures.Executor):
    """Compiles at once, and counts."""

    def __init__(self):
        self.count = 0

    def submit(self, compile, /):
        self.count += 1
        future = concurrent.futures.Future()
        future.set_result(compile())
        return future


def made(pool, function, *like, **options):
    program = Compiled(function, like)
    program.compile(pool, options)
    return program


def test_what_is_compiled_and_in_use_is_not_compiled_again():
    pool, like = Pool(), jax.ShapeDtypeStruct((3,), jnp.float32)
    first = made(pool, lambda x: [jnp.sin(x) * 2], like)
    again = made(pool, lambda y: [jnp.sin(y) * 2], like)
    assert pool.count == 1
    assert_close(again(X[0])[0], first(X[0])[0], 0)
    del first
    made(pool, lambda x: [jnp.sin(x) * 2], like)
    assert pool.count == 1
    del again
    gc.collect()
    made(pool, lambda x: [jnp.sin(x) * 2], like)
    assert pool.count == 2


def test_programs_that_differ_are_compiled_apart():
    pool, like = Pool(), jax.ShapeDtypeStruct((3,), jnp.float32)
    weak = jax.ShapeDtypeStruct((3,), jnp.float32, weak_type=True)
    table = np.arange(40, dtype=np.float32)
    kept = [
        made(pool, lambda x, y: [x * 2], like, like),
        made(pool, lambda x, y: [y * 2], like, like),
        made(pool, lambda x, y: [x * 3], like, like),
        made(pool, lambda x, y: (x * 2,), like, like),
        made(pool, lambda x, y: [x * 2], weak, like),
        made(pool, lambda x, y: [x * 2], like, like, xla_backend_optimization_level=0),
        made(pool, lambda x: [x + jnp.asarray(table)[x.astype(int)]], like),
        made(pool, lambda x: [x + jnp.asarray(2 * table)[x.astype(int)]], like),
    ]
    assert pool.count == len(kept)
    values = X[0], X[1]
    assert_close(kept[1](*values)[0], 2 * X[1], 0)
    assert isinstance(kept[3](*values), tuple)
    assert kept[4](*values)[0].weak_type
    assert_close(kept[7](X[0])[0] - kept[6](X[0])[0], table[np.asarray(X[0]).astype(int)], 1e-6)
