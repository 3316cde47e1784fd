"""Data sets: loaders, the flat pixel store, and batches as a pure function of seed and step."""

from ._annealing import Annealing as Annealing
from ._backdrops import (
    AbstractBackdrop as AbstractBackdrop,
    IgnoreAlpha as IgnoreAlpha,
    put_over as put_over,
    Random as Random,
    Solid as Solid,
)
from ._batches import (
    AbstractPixelChoice as AbstractPixelChoice,
    AllImages as AllImages,
    Batch as Batch,
    Drawn as Drawn,
    RayBatches as RayBatches,
    SingleImage as SingleImage,
)
from ._blender import load_blender as load_blender
from ._bounds import (
    find_bounds as find_bounds,
    find_empty as find_empty,
    look_centre as look_centre,
)
from ._in_scene import CamerasInScene as CamerasInScene, Pixels as Pixels
from ._listed import Listed as Listed, pixels_through as pixels_through
from ._pixel_store import cache_folder as cache_folder, gather_pixels as gather_pixels
from ._reader import Loader as Loader, PixelReader as PixelReader
from ._views import (
    pixel_rays as pixel_rays,
    stack_cameras as stack_cameras,
    Views as Views,
    views as views,
)
