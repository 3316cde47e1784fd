"""Files to NumPy arrays and back; everything that reads an untrusted file.

Read `_errors` first, then a format: `_pictures` with `_exif`, `_hdr`, `_archive`, `_colmap`.
"""

from ._errors import DamagedFile as DamagedFile, FileError as FileError
from ._pictures import write_animation as write_animation, write_picture as write_picture

# Internal: for other packages of the library, and for none of its users.
from ._archive import read_archive, read_header, write_archive
from ._arrays import read_array
from ._atomic import atomic_write, drop_parts, PART, replace_file, require_no_links
from ._color_maps import check_color_map, USUAL_MAP
from ._colmap import ColmapCamera, ColmapImage, ColmapModel, read_colmap
from ._exif import LensTags, PictureHeader, read_lens_tags, read_picture_header, turn_upright
from ._extras import import_extra, MissingExtra
from ._float_pictures import read_exr, require_exr, write_exr, write_float_picture
from ._hdr import read_hdr, write_hdr
from ._json import append_json, read_json, write_json
from ._kinds import check_kinds
from ._lock import LOCK_FILE, locked_folder
from ._mapped import MappedArray, open_mapped, require_space, write_mapped
from ._pictures import (
    decode_picture,
    encode_png,
    read_picture,
    read_small_picture,
    require_video,
    write_photograph,
)
from ._poses import are_usable, as_matrix, as_number, as_pose, LARGEST
from ._read import read_bytes, require_regular
