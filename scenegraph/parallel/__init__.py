"""Several devices and several processes: meshes, layouts of arrays, and collectives."""

from ._agree import Agreement as Agreement, check_alike as check_alike
from ._devices import (
    cut_over as cut_over,
    device_mesh as device_mesh,
    map_over_devices as map_over_devices,
    mesh_of as mesh_of,
    pad_rows as pad_rows,
    sum_over_devices as sum_over_devices,
    whole_on as whole_on,
)
from ._layout import as_layout as as_layout, gather_whole as gather_whole, Layout as Layout
