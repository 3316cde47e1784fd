"""Blocks and loops of rows: as many as there turn out to be."""

# Internal: for other packages of the library, and for none of its users.
from ._loop_rows import loop_rows
from ._map_blocks import map_blocks, sum_blocks
from ._places import put_rows, take_rows

from .._first_use import finish_import, moved_names


__getattr__ = moved_names(__name__, {"map_rows": "scenegraph.rows"})
finish_import(__name__)
