"""Functions of gathered instances: every row has one of its own, of any kind."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree
from ..flat import Instance, InstanceStack, locate, split_large
from ..numerics import choose_block, count_before
from ..rows import map_rows
from ..rowwise import exchange_rows, map_blocks, store


# Rows of one kind that are computed at once, on a CPU and elsewhere: of fewer, less is done in vain
# at the end of every kind, and all numbers of a loop are in the cache; but each block has its cost.
_BLOCK, _BLOCK_ELSEWHERE = 512, 2**17


class _Schedule(NamedTuple):
    """Rows sorted by kind, each kind from the beginning of a block on."""

    rows: Int[Array, "blocks size"]  # unused places repeat rows of the same kind
    kinds: Int[Array, " blocks"]
    filled: Int[Array, ""]  # the number of blocks that have any rows
    # Where a row is, in the flattened blocks; beyond their end for those that are not used.
    slots: Int[Array, " rows"]

    def take(self, rows: PyTree) -> PyTree:
        """Returns the rows of blocks; what is computed of unused places must not count."""
        return exchange_rows(rows, self.rows, self.slots)

    def put_back(self, blocks: PyTree) -> PyTree:
        """Returns results of blocks in the order of the rows; zeros where none was used."""
        rows = self.rows.ravel()
        # rows[slots[i]] = i: of the slots with a row, its own alone gets its cotangent.
        is_own = self.slots[rows] == jnp.arange(rows.shape[0], dtype=rows.dtype)
        back = jnp.where(is_own, rows, self.slots.shape[0])
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), blocks)
        return exchange_rows(flat, self.slots, back)


def map_by_kind(
    function: Callable[[Instance, PyTree], PyTree],
    stacks: Sequence[InstanceStack],
    numbers: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    rows: PyTree,
    *,
    total: int | None = None,
) -> PyTree:
    """Applies a function to every row and the instance of its number, whatever its kind.

    Rows that are not used cost nothing, and get zeros. The function must not close over traced
    arrays. All numbers are below `total`; by default, the stacks have all of them.
    """
    parts = split_large(stacks)
    kinds, places = locate(parts, total or sum(stack.count for stack in stacks))

    def of_row(part: InstanceStack, row: tuple) -> PyTree:
        there, place, own = row
        compute = lambda own: function(part.pick(place), own)
        shape = jax.eval_shape(compute, own)
        zeros = lambda own: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
        return jax.lax.cond(there, compute, zeros, own)

    # A kernel for each kind: LLVM takes longer for one of all, and scenes share those of kinds.
    own_kinds, own_places, results = kinds[numbers], places[numbers], None
    for kind, part in enumerate(parts):
        there = used & (own_kinds == kind)
        found = map_rows(of_row, part, (there, own_places, rows))
        results = found if results is None else where_rows(there, found, results)
    return results


def where_rows(there: Bool[Array, " rows"], yes: PyTree, no: PyTree) -> PyTree:
    """Chooses between the rows of two trees."""
    pick = lambda x, y: jnp.where(there.reshape(-1, *(1,) * (x.ndim - 1)), x, y)
    return jax.tree.map(pick, yes, no)


def map_by_case(
    functions: Sequence[Callable[[PyTree, PyTree], PyTree]],
    shared: PyTree,
    cases: Int[Array, " rows"],
    rows: PyTree,
) -> PyTree:
    """Applies to every row the function of its number, to `shared` and blocks of such rows.

    Rows of a number beyond the last function cost nothing, and get zeros. The functions must not
    close over traced arrays.
    """
    schedule = _schedule(cases, len(functions))

    def one_block(shared: PyTree, block: tuple) -> PyTree:
        case, rows = block
        return jax.lax.switch(case, functions, shared, rows)

    blocks = schedule.kinds, schedule.take(rows)
    return schedule.put_back(map_blocks(one_block, shared, blocks, schedule.filled))


def map_used(
    function: Callable[[PyTree, PyTree], PyTree],
    shared: PyTree,
    used: Bool[Array, " rows"],
    rows: PyTree,
) -> PyTree:
    """Applies a function to `shared` and blocks of the rows that are used; see `map_by_case`."""
    return map_by_case([function], shared, jnp.where(used, 0, 1), rows)


def _schedule(kinds: Int[Array, " rows"], count: int) -> _Schedule:
    """Sorts rows by kind; those of kind `count` are left out."""
    total = kinds.shape[0]
    size = min(choose_block(_BLOCK, _BLOCK_ELSEWHERE), total)
    place = jnp.arange(total, dtype=jnp.int32)
    is_of = kinds == jnp.arange(count)[:, None]
    before, members = jax.vmap(count_before)(is_of)
    blocks = -(-members // size)
    # Each kind fills whole blocks: sum_k ceil(n_k / size) <= total // size + kinds of them.
    first = jnp.cumsum(blocks) - blocks
    number = jnp.arange(total // size + count, dtype=jnp.int32)
    kind = jnp.sum(number[:, None] >= (first + blocks)[None, :-1], axis=1)
    # The n-th row of its kind is the n-th place from the kind's first block on.
    slots = jnp.sum(jnp.where(is_of, size * first[:, None] + before, 0), axis=0)
    some = jnp.min(jnp.where(is_of, place, total - 1), axis=1)[kind]
    slots = store(jnp.where(kinds < count, slots, size * kind.shape[0]))
    rows = jnp.repeat(some, size).at[slots].set(place, mode="drop", unique_indices=True)
    if size > _BLOCK:
        rows = rows[_spread(size * first[kind], members[kind], size)]
    return _Schedule(rows.reshape(-1, size), kind, jnp.sum(blocks), slots)


def _spread(
    begin: Int[Array, " blocks"], members: Int[Array, " blocks"], size: int
) -> Int[Array, " slots"]:
    """Returns the slots whose rows unused slots repeat: all rows of a kind, one after the other.

    Of large blocks many slots are unused. On a GPU, the cotangents of thousands that repeat one
    row's instance would wait for each other.
    """
    slot = jnp.arange(begin.shape[0] * size, dtype=jnp.int32)
    begin, members = jnp.repeat(begin, size), jnp.repeat(jnp.maximum(members, 1), size)
    return begin + (slot - begin) % members


def map_in_turn(function: Callable[[PyTree], PyTree], rows: PyTree) -> PyTree:
    """Maps a function over rows, one after the other; one alone needs no loop."""
    if jax.tree.leaves(rows)[0].shape[0] > 1:
        return jax.lax.map(function, rows)
    first = jax.tree.map(lambda x: x.reshape(x.shape[1:]), rows)
    return jax.tree.map(lambda x: x[None], function(first))
