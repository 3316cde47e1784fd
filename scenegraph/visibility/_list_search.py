"""The search along lists: of every kind what bundles may touch, and of many what each ray may."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Int, PyTree, UInt32
from ..flat import Instance, InstanceStack, world_ball
from ..numerics import choose_block, count_bits, order_longest_first, pack_bits
from ..programs import say_times
from ..rays import Ray
from ..rows import map_rows
from ..rowwise import Columns, put_rows, split_row, split_rows, split_rows_last, store, take_rows
from ..shapes import cone_touches
from ..transforms import Ball
from ._lists import CandidateLists, list_along_rays


# Of kinds of more members, lists are long: putting shadow rays in order pays, because lists get
# shorter, and are found sooner; and so does testing the candidates of a bundle ray by ray.
MANY = 256
# Rays that are searched at once, so that all numbers of a loop over them are in the cache; fewer of
# kinds of many members, whose lists differ more in length.
_BLOCK, _BLOCK_OF_MANY = 512, 128
# Elsewhere than on a CPU, where turns of loops cost more.
_ELSEWHERE, _MANY_ELSEWHERE = 2**16, 2**14
# Candidates in a word, a bit for each; of these, a ray may touch about so many.
_WORD, _MET = 32, 4


class Visit(NamedTuple):
    """The meeting of one row with one candidate, and what the row keeps of it."""

    meet: Callable[[Instance, PyTree], PyTree]
    # Of the memory, of what was met, and whether that counts: the next memory. Rows, if there are
    # several, are along the last axis.
    remember: Callable[[PyTree, PyTree, Array], PyTree]

    def show(
        self,
        shared: Instance,
        members: Columns | None,
        own: Columns,
        memory: PyTree,
        there: Bool[Array, " rows"],
    ) -> PyTree:
        """Shows every row an instance, of which each may have members of its own."""

        def meet(shared: Instance, row: tuple[Columns | None, Columns]) -> PyTree:
            members, own = row
            whole = shared if members is None else eqx.combine(members.joined(), shared)
            return self.meet(whole, own.joined())

        def add(shared: Instance, row: tuple[tuple, Columns, Array]) -> Columns:
            return split_row(self.remember(row[1].joined(), meet(shared, row[0]), row[2]))

        if isinstance(memory, Columns):
            return map_rows(add, shared, ((members, own), memory, there))
        return self.remember(memory, map_rows(meet, shared, (members, own)), there)


def open_memory(memory: PyTree) -> PyTree:
    """Takes a memory of few numbers apart: rows then keep what they meet in the same loop."""
    numbers = sum(math.prod(x.shape[:-1]) for x in jax.tree.leaves(memory))
    return split_rows_last(memory) if numbers <= _FEW_NUMBERS else memory


def close_memory(memory: PyTree) -> PyTree:
    """Puts a memory together again."""
    return memory.joined_last() if isinstance(memory, Columns) else memory


# Numbers of a row's memory: eight ranks are few. Measured: kernels of their own insert into longer
# rankings as fast as the loop over rows, and compile several times as fast.
_FEW_NUMBERS = 32


class _Listed(NamedTuple):
    """Members of kinds on the lists of bundles, each kind from the beginning of a word on."""

    stacks: tuple[InstanceStack, ...]
    candidates: CandidateLists
    centers: Array  # `3 members`
    radii: Array
    words: Int[Array, " kinds+1"]  # the first word of each kind, and one beyond the last


class _Turn(NamedTuple):
    """The candidates of one kind of some bundles."""

    listed: _Listed
    kind: Int[Array, ""]
    first: Int[Array, " bundles"]  # how many candidates of other kinds come before
    lengths: Int[Array, " bundles"]  # the number of candidates


def search_lists(
    stacks: Sequence[InstanceStack],
    rays: Ray,
    used: Bool[Array, " rays"],
    visit: Visit,
    rows: PyTree,
    memory: PyTree,
    size: int,
) -> PyTree:
    """Shows every row those candidates of its bundle that it may touch itself.

    The rays are those of the rows, `size` to a bundle; the memory has the axis over rows last. One
    loop takes kind after kind: it is compiled once.
    """
    listed = _list(stacks, rays, used, size)
    apart = lambda x: x.reshape(*x.shape[:-1], -1, size)
    joined = lambda x: x.reshape(*x.shape[:-2], -1)
    in_bundles = lambda x: x.reshape(-1, size, *x.shape[1:])
    rays, rows = jax.tree.map(in_bundles, (rays, rows))
    one = lambda kind, memory: _search_kind(listed, kind, rays, visit, rows, memory)
    memory, count = jax.tree.map(apart, memory), max(stack.count for stack in stacks)
    turns = len(stacks) * (count if count <= MANY else -(-count // _WORD))
    with say_times(used.shape[0] * turns):
        memory = _in_turn(len(stacks), one, memory)
    return jax.tree.map(joined, memory)


def _in_turn(count: int, one: Callable[[Array, PyTree], PyTree], carry: PyTree) -> PyTree:
    """Takes turns; a single one needs no loop."""
    if count == 1:
        return one(jnp.zeros((), jnp.int32), carry)
    return jax.lax.fori_loop(0, count, one, carry)


def _list(
    stacks: Sequence[InstanceStack], rays: Ray, used: Bool[Array, " rays"], size: int
) -> _Listed:
    """Lists the members of all kinds at once."""
    balls = [_pad_to_word(stack.map(world_ball)) for stack in stacks]
    joined = jax.tree.map(lambda *x: jnp.concatenate(x), *balls)
    words = np.cumsum([0, *(ball.radius.shape[0] // _WORD for ball in balls)])
    candidates = list_along_rays(joined, rays, used, size)
    center, radius = joined.center.T, joined.radius
    return _Listed(tuple(stacks), candidates, center, radius, jnp.asarray(words, jnp.int32))


def _pad_to_word(balls: Ball) -> Ball:
    """Appends balls that nothing touches until the last word is full."""
    more = -balls.radius.shape[0] % _WORD
    center = jnp.pad(balls.center, ((0, more), (0, 0)), mode="edge")
    return Ball(center, jnp.pad(balls.radius, (0, more), constant_values=-jnp.inf))


def _search_kind(
    listed: _Listed, kind: Array, rays: Ray, visit: Visit, rows: PyTree, memory: PyTree
) -> PyTree:
    """Searches the members of one kind, some bundles at a time."""
    bundles, size = rays.near.shape
    sizes = (_BLOCK_OF_MANY, _MANY_ELSEWHERE) if _are_many(listed) else (_BLOCK, _ELSEWHERE)
    most = choose_block(*sizes)
    block = min(most // size, bundles)
    joined = lambda x: x.reshape(*x.shape[:-2], -1)
    apart = lambda x: x.reshape(*x.shape[:-1], -1, size)
    first, lengths = listed.candidates.within(*listed.words[kind + jnp.arange(2)])
    # Longest lists first, so that bundles whose rays meet about as many go together.
    order = order_longest_first(lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])

    def one_block(i: Array, memory: PyTree) -> PyTree:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        whole = listed.candidates, first, lengths, rays, rows
        candidates, *counts, own, mine = take_rows(whole, chosen)
        turn = _Turn(listed._replace(candidates=candidates), kind, *counts)
        seen = jax.tree.map(joined, take_rows(memory, chosen, -2))
        seen = _search_block(turn, own, mine, visit, seen)
        return put_rows(memory, chosen, jax.tree.map(apart, seen), -2)

    blocks = (jnp.sum(lengths > 0) + block - 1) // block
    return jax.lax.fori_loop(0, blocks, one_block, memory)


def _are_many(listed: _Listed) -> bool:
    return listed.stacks[0].count > MANY


def _search_block(turn: _Turn, rays: Ray, rows: PyTree, visit: Visit, memory: PyTree) -> PyTree:
    """Searches some bundles at once: the loop is as long as their longest list."""
    own, memory = split_rows(jax.tree.map(_flat, rows)), open_memory(memory)
    walk = _walk_tested if _are_many(turn.listed) else _walk
    return close_memory(walk(turn, rays, visit, own, memory))


def _of_kind(turn: _Turn, function: Callable[..., PyTree], *operands: PyTree) -> PyTree:
    """Computes a function of the stack of a kind."""
    branches = [functools.partial(function, stack) for stack in turn.listed.stacks]
    if len(branches) == 1:
        return branches[0](*operands)
    return jax.lax.switch(turn.kind, branches, *operands)


def _walk(turn: _Turn, rays: Ray, visit: Visit, own: Columns, memory: PyTree) -> PyTree:
    """Shows every row all candidates of its bundle."""
    size = rays.near.shape[1]

    def walk(stack: InstanceStack, own: Columns, memory: PyTree) -> PyTree:
        some = _show_shared if _shares_members(stack) else _show_listed
        return some(turn, stack, size, visit, own, memory)

    return _of_kind(turn, walk, own, memory)


# Members of more numbers are not gathered for every row, of which each would be a column.
_GATHERED = 2**7


def _shares_members(stack: InstanceStack) -> bool:
    """Returns true if rows share one member after the other, instead of having their own."""
    numbers = sum(x.size for x in jax.tree.leaves(stack.members))
    return stack.count == 1 or numbers > _GATHERED * stack.count


def _show_shared(
    turn: _Turn, stack: InstanceStack, size: int, visit: Visit, own: Columns, memory: PyTree
) -> PyTree:
    """Shows the rows of bundles one member after the other; those on no list cost nothing."""
    begin = _WORD * turn.listed.words[turn.kind]

    def one(n: Array, memory: PyTree) -> PyTree:
        member = stack.first() if stack.count == 1 else stack.at(n)
        there = jnp.repeat(turn.listed.candidates.holds(begin + n), size)
        show = lambda memory: visit.show(member, None, own, memory, there)
        return jax.lax.cond(jnp.any(there), show, lambda memory: memory, memory)

    return _in_turn(stack.count, one, memory)


def _show_listed(
    turn: _Turn, stack: InstanceStack, size: int, visit: Visit, own: Columns, memory: PyTree
) -> PyTree:
    """Shows the rows of bundles their candidates, each its own."""
    begin, longest = _WORD * turn.listed.words[turn.kind], jnp.max(turn.lengths)

    def one(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        n, memory = carry
        # Members are those of bundles, whose rows share them; beyond a list's end, any.
        number = turn.listed.candidates.nth(turn.first + n) - begin
        members = split_rows(stack.take(jnp.minimum(number, stack.count - 1)).members)
        each = lambda x: jnp.repeat(x, size, axis=0)
        members, there = jax.tree.map(each, (members, n < turn.lengths))
        return n + 1, visit.show(stack.shared, members, own, memory, there)

    start = jnp.zeros((), jnp.int32), memory
    return jax.lax.while_loop(lambda carry: carry[0] < longest, one, start)[1]


def _walk_tested(turn: _Turn, rays: Ray, visit: Visit, own: Columns, memory: PyTree) -> PyTree:
    """Shows every row those candidates of its bundle that it may touch itself."""

    def some(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        begin, memory = carry
        members, touched = _test_rays(turn, rays, begin)
        show = functools.partial(_meet, visit=visit)
        return begin + _WORD, _of_kind(turn, show, members, touched, own, memory)

    longest, start = jnp.max(turn.lengths), (jnp.zeros((), jnp.int32), memory)
    return jax.lax.while_loop(lambda carry: carry[0] < longest, some, start)[1]


def _test_rays(
    turn: _Turn, rays: Ray, begin: Int[Array, ""]
) -> tuple[Int[Array, "bundles 32"], UInt32[Array, " rows"]]:
    """Tests the next candidates against each ray of their bundle; returns them, and bits."""
    listed, n = turn.listed, begin + jnp.arange(_WORD, dtype=jnp.int32)
    nth = lambda n: listed.candidates.nth(turn.first + n)
    members = store(jax.vmap(nth, out_axes=1)(n))
    there = n < turn.lengths[:, None]
    balls = listed.centers[:, members], listed.radii[members]
    with say_times(_WORD):
        test = jax.vmap(jax.vmap(_touches, (0, None, None, None)), (0, 1, 0, 0))
        touched = store(test(rays, *balls, there).ravel())
    return members - _WORD * listed.words[turn.kind], touched


def _touches(
    ray: Ray, center: Float[Array, "3 32"], radius: Float[Array, "32"], there: Bool[Array, "32"]
) -> UInt32[Array, ""]:
    """Returns a bit for each of some balls that a ray may touch."""
    test = lambda center, radius: cone_touches(ray, Ball(center, radius))
    return pack_bits(jax.vmap(test, (1, 0))(center, radius) & there)[0]


def _meet(
    stack: InstanceStack,
    members: Int[Array, "bundles 32"],
    touched: UInt32[Array, " rows"],
    own: Columns,
    memory: PyTree,
    *,
    visit: Visit,
) -> PyTree:
    """Shows every row the members of its bundle whose bits are set."""
    (count,), bundles = touched.shape, members.shape[0]
    # Beyond a list's end are members of other kinds.
    members = jnp.minimum(members, stack.count - 1)
    first = _WORD * (jnp.arange(count, dtype=jnp.int32) // (count // bundles))

    def one(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        rest, memory = carry
        # The place of the lowest bit is the number of bits below it.
        lowest = rest & -rest
        place = first + jnp.minimum(count_bits(lowest - 1), _WORD - 1)
        member = store(members.ravel().at[place].get(mode="promise_in_bounds"))
        some = split_rows(stack.take(member).members)
        return rest ^ lowest, visit.show(stack.shared, some, own, memory, rest > 0)

    with say_times(_MET):
        return jax.lax.while_loop(lambda carry: jnp.any(carry[0] > 0), one, (touched, memory))[1]


def _flat(rows: Array) -> Array:
    """Joins the axes over bundles and rays."""
    return rows.reshape(-1, *rows.shape[2:])
