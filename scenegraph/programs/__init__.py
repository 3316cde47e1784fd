"""Compiled programs: soon at first, in pieces, and well once it pays; and room for all of them.

Read `_tiers` (the choice), `_quick` (functions compiled soon) with `_traced`, `_options` (what XLA
is asked for), `_pieces` and `_turns` (long programs, cut), `_many_arrays` (some at a time),
`_threads` (which share out turns), `_work` (which pieces run long), and `_memory` (when programs
are forgotten).
"""

from ._tiers import tiered_jit as tiered_jit

# Internal: for other packages of the library, and for none of its users.
from ._memory import make_room_for_programs
from ._options import (
    can_be_quick,
    FOR_A_FEW_RUNS,
    FOR_MANY_RUNS,
    FOR_SOME_RUNS,
    known_options,
)
from ._quick import ProgramInPieces, quick_jit, QuickProgram
from ._threads import count_threads
from ._tiers import expect_calls, TieredFunction
from ._traced import kind_of
from ._turns import Loop, take_turns_outside
from ._work import are_kernels, find_within, say_times

from .._first_use import finish_import


finish_import(__name__)
