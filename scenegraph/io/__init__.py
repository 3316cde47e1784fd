"""Bytes to numpy and back; everything that reads an untrusted file."""

from ._archive import read_archive as read_archive, write_archive as write_archive
from ._errors import FileError as FileError
from ._json import read_json as read_json, write_json as write_json
from ._mapped import (
    MappedArray as MappedArray,
    open_mapped as open_mapped,
    require_room as require_room,
    write_mapped as write_mapped,
)
from ._pictures import (
    read_picture as read_picture,
    write_animation as write_animation,
    write_picture as write_picture,
)
