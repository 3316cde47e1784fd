"""Pictures with their cameras as one flat list of pixels, and batches of these.

A user finds them in `data`, beside the loaders. To read it in order: `_pixel_store` (all pixels in
one list) with `_decoded_cache`, `_backdrops`, `_scene_cameras`, `_annealing`, `_stacked`,
`_pixel_weights`, `_sightings`, `_views` (pictures with cameras), `_lines`, `_reader`, `_batches`,
`_patches`, `_pixel_list`.
"""

# Internal: for other packages of the library; `data` has the public ones of them for users.
from ._annealing import Annealing
from ._backdrops import AbstractBackdrop, IgnoreAlpha, over_background, Random, Solid
from ._batches import (
    AbstractPixelChoice,
    AllImages,
    Batch,
    DrawnPixels,
    RayBatches,
    SingleImage,
)
from ._patches import Patches
from ._lines import frame_lines, known_cameras, on_host, pixel_lines, take_camera
from ._pixel_list import edge_pixels, PixelList, pixels_through
from ._pixel_store import cache_folder, free_on_host, gather_pixels, PixelArray
from ._reader import PixelReader, Prefetcher
from ._scene_cameras import SceneCameras, ScenePixels
from ._sightings import Sightings
from ._stacked import stack_cameras
from ._views import in_stated_space, pixel_rays, Views, views

from .._first_use import finish_import


finish_import(__name__)
