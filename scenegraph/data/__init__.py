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
from ._convert_colmap import convert_colmap as convert_colmap
from ._convert_multiscale import convert_multiscale as convert_multiscale
from ._formats import (
    find_format as find_format,
    find_splits as find_splits,
    Format as Format,
    load_data as load_data,
)
from ._in_scene import CamerasInScene as CamerasInScene, Pixels as Pixels
from ._listed import Listed as Listed, pixels_through as pixels_through
from ._llff import llff_path as llff_path, load_llff as load_llff
from ._multiscale import load_multiscale as load_multiscale
from ._pixel_store import cache_folder as cache_folder, gather_pixels as gather_pixels
from ._reader import Loader as Loader, PixelReader as PixelReader
from ._transforms import (
    load_transforms as load_transforms,
    transforms_path as transforms_path,
    transforms_splits as transforms_splits,
)
from ._views import (
    pixel_rays as pixel_rays,
    stack_cameras as stack_cameras,
    Views as Views,
    views as views,
)
