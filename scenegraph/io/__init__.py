"""Bytes to numpy and back; everything that reads an untrusted file."""

from ._archive import read_archive as read_archive
from ._archive import write_archive as write_archive
from ._errors import FileError as FileError
from ._json import read_json as read_json
from ._json import write_json as write_json
from ._pictures import (
    read_picture as read_picture,
)
from ._pictures import (
    write_animation as write_animation,
)
from ._pictures import (
    write_picture as write_picture,
)
