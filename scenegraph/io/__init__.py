"""Bytes to numpy and back; everything that reads an untrusted file."""

from ._archive import (
    read_archive as read_archive,
    read_header as read_header,
    write_archive as write_archive,
)
from ._atomic import PART as PART, replace_file as replace_file
from ._errors import DamagedFile as DamagedFile, FileError as FileError
from ._json import (
    append_json as append_json,
    read_json as read_json,
    write_json as write_json,
)
from ._pictures import (
    read_picture as read_picture,
    write_animation as write_animation,
    write_picture as write_picture,
)
