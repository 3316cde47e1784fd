"""Several devices and several processes: meshes, layouts of arrays, and collectives.

Read `_devices` (rows shared by devices), `_layout` (the arrays of a fit), `_agree` (decisions of
the processes of a fit), `_processes` (a whole job: start, exchange, end).
"""

from ._layout import gather_whole as gather_whole, Layout as Layout

# Internal: for other packages of the library, and for none of its users.
from ._agree import Agreement, check_alike
from ._devices import (
    cut_over,
    device_mesh,
    is_on_explicit_mesh,
    map_over_devices,
    mesh_of,
    pad_rows,
    sum_over_devices,
    whole_on,
    with_automatic_axes,
)
from ._layout import as_layout
from ._processes import (
    end_if_lost,
    ends_together,
    first_then_others,
    from_first,
    is_first,
    join,
    largest,
    own_folder,
)

from .._first_use import finish_import


finish_import(__name__)
