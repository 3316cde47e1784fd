"""Blocks and loops of rows, until the search over faces is one walk, too."""

# Internal: for other packages of the library, and for none of its users.
from ._exchange import exchange_rows
from ._loop_rows import loop_rows
from ._map_blocks import map_blocks, sum_blocks
from ._places import put_rows, take_rows
from ._store import store

from .._first_use import finish_import, moved_names


__getattr__ = moved_names(__name__, {"map_rows": "scenegraph.rows"})
finish_import(__name__)
