"""Blocks and loops of rows, and `map_rows`, which is now `sg.rows.map_rows`."""

from ..rows import map_rows as map_rows

# Internal: for other packages of the library, and for none of its users.
from ..rows import count_scalars, lower_by_vmap, push_map, row_avals, transpose_map
from ._columns import Columns, split_row, split_rows, split_rows_last
from ._exchange import exchange_rows
from ._loop_rows import loop_rows
from ._map_blocks import map_blocks, sum_blocks
from ._places import put_rows, take_rows
from ._store import store

from .._first_use import finish_import


finish_import(__name__)
