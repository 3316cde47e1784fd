"""Native kernels: graphs of the scalars of a row as machine code, called by XLA.

A kernel is one loop over vectors of rows, in which every scalar of a row is computed once, by
LLVM (llvmlite). It is called through XLA's foreign function interface (`jax.ffi`), reads operands
and writes results in the layout that they have, and takes the number of rows from the call: another
number of rows compiles nothing. All cores share its ranges of rows (`SCENEGRAPH_THREADS` says how
many threads at most), and sums over rows are the same bit for bit for any number of threads.

Read `_kernel`, then `_part` (the loop), `_operations` and `_mathematics` (the code of operations),
`_handler` (threads, and XLA's structures) and `_target` (compilation).
"""

# Internal: for other packages of the library, and for none of its users.
from ._kernel import compile_kernel, NotNative
from ._operands import Element, has_type, Operand, Result
from ._target import is_available

from .._first_use import finish_import


finish_import(__name__)
