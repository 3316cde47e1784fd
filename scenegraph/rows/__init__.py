"""`map_rows`: a function of one row, such as a ray, as one native kernel over all rows.

**Intermediate representation.** A graph of scalar expressions of one row. A node is an elementwise
JAX primitive applied to nodes, an input or a constant, a look-up, a loop or a branch. It is
*varying* if rows differ, and *uniform* otherwise. An array of one row is a numpy array of nodes, so
that stacking, slicing, transposing and the like only move references and cost nothing.

**Passes**, in order:

1. Tracing: the function becomes a jaxpr of one row, and is differentiated as one.
2. Scalarisation: every equation becomes nodes, one for each scalar of its result, with constant
   folding, common subexpression elimination and algebraic simplification. The rules hold for every
   number: `0 x` is not 0, because it is NaN if `x` is infinite or NaN. Small sums, products of
   matrices and sorts are unrolled; loops and branches have nodes within.
3. Code: one loop over vectors of rows, in which every scalar is computed once, by LLVM (llvmlite).
   A loop of a row ends when all rows of a vector are done; a branch is taken if any row takes it.
4. The call: through XLA's foreign function interface (`jax.ffi`). Operands are read and results
   written in the layout that they have; the number of rows and the lengths of tables come from the
   call: others compile nothing. All cores share the ranges of rows (`SCENEGRAPH_THREADS` says how
   many threads at most), and sums over rows are the same bit for bit for any number of threads.

**Semantics.** Values, infinities and NaN are those of `jax.vmap` of the same function, up to
rounding and the signs of zeros; tests compare random programs.

**Derivatives.** `map_rows` is a primitive. Its jvp and its transpose are `map_rows` of the jvp and
the transpose of the row function, so derivatives of any order run through the same passes. They
recompute what they need of the function instead of storing it. Cotangents of shared operands are
summed over rows; those of tables are added where they were looked up. `jax.vmap` adds rows, in
groups for what differs from one element of the batch to the next.

**Left to `jax.vmap`**: other devices, several devices, exported programs, calls outside of
`jax.jit`, empty batches, functions of more than 80,000 expressions or with an operation without
native code, and what is compiled within `lower_by_vmap`.

Read `_map_rows` (the entrance), `_primitive` (tracing, derivatives, batches), `_lower` and
`_by_vmap` (who computes), `_call` (kernels as calls); then `_graph`, `_scalarise` with its tables
`_rules`, `_movement`, `_sorts`, `_look_ups`, `_control`, and `_values`; `_simplify`, `_constants`;
then code: `_kernel`, `_part` (the loop), `_operations` and `_mathematics`, `_handler` (threads, and
XLA's structures), `_table_sums`, and `_target` (compilation).
"""

from ._log import compile_log as compile_log
from ._map_rows import map_rows as map_rows
from ._packets import any_in_packet as any_in_packet

# Internal: for other packages of the library, and for none of its users.
from ._add_each import add_each, zeros_each
from ._add_rows import add_rows
from ._by_vmap import by_vmap, count_rows
from ._late import call_late
from ._list_true import list_true
from ._map_rows import as_operands, map_rows_p
from ._operands import WIDTH
from ._packets import same_in_packet
from ._stacking import stack_alike
from ._lower import count_scalars, lower_by_vmap
from ._primitive import define_map, push_map, row_avals, trace_row, transpose_map

from .._first_use import finish_import


finish_import(__name__)
