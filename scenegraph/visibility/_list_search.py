"""The search of kinds of many members: what bundles may touch, and of that what each ray may."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, UInt32
from ..flat import Instance, InstanceStack
from ..numerics import choose_block, count_bits, order_longest_first, pack_bits
from ..programs import say_times
from ..rays import Ray
from ..rowwise import (
    Columns,
    map_rows,
    put_rows,
    split_row,
    split_rows,
    split_rows_last,
    store,
    take_rows,
)
from ..shapes import cone_touches
from ..transforms import Ball
from ._lists import AbstractCandidates


# Of kinds of more members, lists are long: putting shadow rays in order pays, because lists get
# shorter, and are found sooner; and so does testing the candidates of a bundle ray by ray.
MANY = 256
# Rays that are searched at once, so that all numbers of a loop over them are in the cache; fewer of
# kinds of many members, whose lists differ more in length.
BLOCK, _BLOCK_OF_MANY = 512, 128
# Elsewhere than on a CPU, where turns of loops cost more.
ELSEWHERE, _MANY_ELSEWHERE = 2**16, 2**14
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
    """Members of a stack on the lists of bundles, and the balls about all members."""

    stack: InstanceStack
    candidates: AbstractCandidates
    centers: Array  # `3 members`
    radii: Array


def search_lists(
    stack: InstanceStack,
    balls: Ball,
    candidates: AbstractCandidates,
    rays: Ray,
    visit: Visit,
    rows: PyTree,
    memory: PyTree,
) -> PyTree:
    """Shows every row those candidates of its bundle that it may touch itself.

    The rays are those of the rows; the memory has the axis over rows last.
    """
    lengths, listed = candidates.lengths, _Listed(stack, candidates, balls.center.T, balls.radius)
    bundles, size = lengths.shape[0], jax.tree.leaves(rows)[0].shape[0] // lengths.shape[0]
    in_bundles = lambda x: x.reshape(-1, size, *x.shape[1:])
    joined = lambda x: x.reshape(*x.shape[:-2], -1)
    apart = lambda x: x.reshape(*x.shape[:-1], -1, size)
    many = _BLOCK_OF_MANY, _MANY_ELSEWHERE
    most = choose_block(*(many if stack.count > MANY else (BLOCK, ELSEWHERE)))
    block = min(most // size, bundles)
    # Longest lists first, so that bundles whose rays meet about as many go together.
    order = order_longest_first(lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    rays, rows = jax.tree.map(in_bundles, (rays, rows))
    memory = jax.tree.map(apart, memory)

    def one_block(i: Array, memory: PyTree) -> PyTree:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        some, *own = take_rows((candidates, rays, rows), chosen)
        seen = jax.tree.map(joined, take_rows(memory, chosen, -2))
        seen = _search_block(listed._replace(candidates=some), own[0], own[1], visit, seen)
        return put_rows(memory, chosen, jax.tree.map(apart, seen), -2)

    blocks = (jnp.sum(lengths > 0) + block - 1) // block
    turns = stack.count if stack.count <= MANY else -(-stack.count // _WORD)
    with say_times(bundles * size * turns):
        memory = jax.lax.fori_loop(0, blocks, one_block, memory)
    return jax.tree.map(joined, memory)


def _search_block(listed: _Listed, rays: Ray, rows: PyTree, visit: Visit, memory: PyTree) -> PyTree:
    """Searches some bundles at once: the loop is as long as their longest list."""
    own, memory = split_rows(jax.tree.map(_flat, rows)), open_memory(memory)
    walk = _walk if listed.stack.count <= MANY else _walk_tested
    return close_memory(walk(listed, rays, visit, own, memory))


def _walk(listed: _Listed, rays: Ray, visit: Visit, own: Columns, memory: PyTree) -> PyTree:
    """Shows every row all candidates of its bundle."""
    lengths, size = listed.candidates.lengths, rays.near.shape[1]

    def one(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        n, memory = carry
        # Members are those of bundles, whose rows share them.
        members = split_rows(listed.stack.take(listed.candidates.nth(n)).members)
        each = lambda x: jnp.repeat(x, size, axis=0)
        members, there = jax.tree.map(each, (members, n < lengths))
        return n + 1, visit.show(listed.stack.shared, members, own, memory, there)

    longest, start = jnp.max(lengths), (jnp.zeros((), jnp.int32), memory)
    return jax.lax.while_loop(lambda carry: carry[0] < longest, one, start)[1]


def _walk_tested(listed: _Listed, rays: Ray, visit: Visit, own: Columns, memory: PyTree) -> PyTree:
    """Shows every row those candidates of its bundle that it may touch itself."""

    def some(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        begin, memory = carry
        members, touched = _test_rays(listed, rays, begin)
        return begin + _WORD, _meet(listed.stack, members, touched, visit, own, memory)

    longest, start = jnp.max(listed.candidates.lengths), (jnp.zeros((), jnp.int32), memory)
    return jax.lax.while_loop(lambda carry: carry[0] < longest, some, start)[1]


def _test_rays(
    listed: _Listed, rays: Ray, begin: Int[Array, ""]
) -> tuple[Int[Array, "bundles 32"], UInt32[Array, " rows"]]:
    """Tests the next candidates against each ray of their bundle; returns them, and bits."""
    n = begin + jnp.arange(_WORD, dtype=jnp.int32)
    members = store(jax.vmap(listed.candidates.nth, out_axes=1)(n))
    there = n < listed.candidates.lengths[:, None]
    balls = listed.centers[:, members], listed.radii[members]
    with say_times(_WORD):
        test = jax.vmap(jax.vmap(_touches, (0, None, None, None)), (0, 1, 0, 0))
        return members, store(test(rays, *balls, there).ravel())


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
    visit: Visit,
    own: Columns,
    memory: PyTree,
) -> PyTree:
    """Shows every row the members of its bundle whose bits are set."""
    (count,), bundles = touched.shape, members.shape[0]
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
