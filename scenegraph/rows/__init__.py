"""Native kernels: functions of one row as machine code, called by XLA."""

from ._map_rows import map_rows as map_rows

# Internal: for other packages of the library, and for none of its users.
from ._by_vmap import by_vmap, count_rows
from ._lower import count_scalars, lower_by_vmap
from ._primitive import define_map, push_map, row_avals, trace_row, transpose_map

from .._first_use import finish_import


finish_import(__name__)
