import os
import pathlib
import stat
from typing import Any

from PIL import Image as PillowImage

from ._errors import FileError
from ._extras import import_extra


# Kinds of pictures that Pillow decodes itself. For others, such as EPS, whatever a file is named,
# it runs other programs.
_KINDS = ("PNG", "JPEG", "MPO", "WEBP", "GIF", "TIFF", "BMP", "DIB", "TGA", "PPM", "JPEG2000")
_KINDS += ("AVIF", "HEIF", "ICO", "ICNS", "PCX", "SGI", "PSD", "QOI", "DDS", "XBM", "XPM", "IM")


def require_regular(path: str | os.PathLike) -> None:
    """Refuses folders, pipes and devices, which may never end; not what is not there."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(mode):
        raise FileError(f"{path} is a folder; only regular files are read.")
    if not stat.S_ISREG(mode):
        raise FileError(f"{path} is a pipe or a device; only regular files are read.")


def read_bytes(path: pathlib.Path) -> bytes:
    """Returns the bytes of a file; a file that cannot be read is a `FileError`."""
    require_regular(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error


# The brands of HEIC and HEIF files, in the bytes that follow the size and `ftyp`.
_HEIF_BRANDS = b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"


def open_picture(file: Any) -> PillowImage.Image:
    """Opens a picture of one of the kinds that are decoded in this process."""
    PillowImage.init()
    start = file.read(12)
    file.seek(0)
    # Phones write AVIF's container with HEVC in it, which Pillow has no decoder for.
    if start[4:8] == b"ftyp" and start[8:] in _HEIF_BRANDS and "HEIF" not in PillowImage.OPEN:
        import_extra("pillow_heif", "photos", "reading HEIC pictures").register_heif_opener()
    return PillowImage.open(file, formats=[x for x in _KINDS if x in PillowImage.OPEN])
