"""`map_rows`: a `jax.vmap` that a CPU computes component by component.

**Native kernels.** On one CPU, a function whose operations all have native code becomes one loop of
machine code (the package `rows`, `_native_call`): passes 1 to 3 below are the same, and 4 and 5 are
LLVM's. Functions with loops, look-ups or sorts in a row, exported programs, several devices, and
machines without llvmlite go the way that follows; the logger `scenegraph.compile` says which
operation it was. `SCENEGRAPH_THREADS` limits the threads of a kernel.

`jax.vmap` turns a function of one ray into operations on arrays of many short vectors, `(rows, 3)`
or `(rows, 2, 3)`. XLA's code for CPUs vectorises such loops badly. This package compiles the
function into operations on long plain arrays instead: one of shape `(rows,)` for every component
of every vector.

**Intermediate representation.** A graph of scalar expressions of one row. A node is an elementwise
JAX primitive applied to nodes, an input or a constant; it is *varying* if rows differ, and
*uniform* otherwise. An array of one row is a numpy array of nodes, so that stacking, slicing,
transposing and the like only move references and cost nothing at run time.

**Passes**, in order:

1. Tracing: the function becomes a jaxpr of one row, and is differentiated as one.
2. Scalarisation: every equation becomes nodes, one for each scalar of its result. Sums, products
   of matrices, running sums and nested `map_rows` are unrolled. An operation without a rule
   (`sort`, `gather`, `scan`, ...) stays whole: it runs under `jax.vmap`, on operands joined again.
3. While the graph is built: constant folding, common subexpression elimination (also of what all
   rows share), and algebraic simplification. The rules hold for every number: `0 x` is not 0,
   because it is NaN if `x` is infinite or NaN.
4. Code generation. Blocks of rows are loops: a loop computes all nodes of a row one after the
   other, each once, and is a single kernel that LLVM vectorises. It is written as a
   `reduce_window` whose windows have one number, because the reducer of several operands may be any
   function of scalars. What an operation without a rule needs, and results of it, bound loops, and
   so does the number of values that LLVM takes from one loop to the next. Many rows, rather many of
   functions too large for one loop, or a compiler that takes such windows for their results, get
   kernels of arrays instead, which XLA divides between cores: a cost model chooses which values it
   stores, and which it computes again for each of their users.
5. Blocking: long batches run in blocks of rows whose intermediate values fit into the cache.

**Semantics.** Values, infinities and NaN are those of `jax.vmap` of the same function, up to
rounding and the signs of zeros; tests compare random programs.

**Derivatives.** `map_rows` is a primitive. Its jvp and its transpose are `map_rows` of the jvp and
the transpose of the row function, so derivatives of any order run through the same passes. They
recompute what they need of the function instead of storing it. Cotangents of shared operands are
summed over rows.

**Left to `jax.vmap`**: every device but CPUs, calls outside of `jax.jit`, a `jax.vmap` around a
`map_rows`, empty batches, functions of more than 70,000 scalars, and what is compiled within
`lower_by_vmap`, because it runs too seldom to be worth a longer compilation.

**Costs.** Compile time grows with the number of scalars: the picture of a ball on a floor has
1,800 nodes and compiles in 3 s as kernels, its gradient has 6,800 and takes 8 s. Loops compile two
to four times sooner.

**When it pays**: on CPUs, for short vectors and batches of thousands of rows; a picture of surfaces
takes a sixth of the time of `jax.vmap`, and its gradient a ninth. It does not pay for neural
networks, whose matrix products have kernels of their own, for large arrays in a row, or for small
batches that run only once.

**Loops** whose rows differ in length, `loop_rows`, are vectorised whole: rows that are done leave,
and the others close ranks.

Read `_map_rows` (tracing, the primitive, derivatives), then `_lower` (blocks, the list of passes),
`_graph`, `_simplify` and `_constants` (nodes, sharing, simplification, folding), `_scalarise` with
its tables `_rules` and `_movement`, `_emit_loops` with `_row_loop`, and `_emit_kernels` (code
generation); then `_map_blocks`, `_loop_rows`, `_columns`, `_places`, `_exchange` and `_store`.
"""

from ._map_rows import map_rows as map_rows

# Internal: for other packages of the library, and for none of its users.
from ._columns import Columns, split_row, split_rows, split_rows_last
from ._exchange import exchange_rows
from ._loop_rows import loop_rows
from ._lower import count_scalars, lower_by_vmap
from ._map_blocks import map_blocks, sum_blocks
from ._places import put_rows, take_rows
from ._primitive import push_map, row_avals, transpose_map
from ._store import store

from .._first_use import finish_import


finish_import(__name__)
