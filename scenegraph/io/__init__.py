"""Bytes to numpy and back; everything that reads an untrusted file."""

from ._archive import (
    read_archive as read_archive,
    read_header as read_header,
    write_archive as write_archive,
)
from ._arrays import read_array as read_array
from ._atomic import PART as PART, replace_file as replace_file
from ._colmap import (
    ColmapCamera as ColmapCamera,
    ColmapImage as ColmapImage,
    ColmapModel as ColmapModel,
    read_colmap as read_colmap,
)
from ._errors import DamagedFile as DamagedFile, FileError as FileError
from ._extras import import_extra as import_extra, MissingExtra as MissingExtra
from ._float_pictures import (
    require_exr as require_exr,
    write_exr as write_exr,
    write_float_picture as write_float_picture,
)
from ._json import (
    append_json as append_json,
    read_json as read_json,
    write_json as write_json,
)
from ._mapped import (
    MappedArray as MappedArray,
    open_mapped as open_mapped,
    require_room as require_room,
    write_mapped as write_mapped,
)
from ._pictures import (
    read_picture as read_picture,
    require_video as require_video,
    write_animation as write_animation,
    write_picture as write_picture,
)
from ._ply import write_points as write_points
from ._poses import (
    are_usable as are_usable,
    as_number as as_number,
    as_pose as as_pose,
    LARGEST as LARGEST,
)
