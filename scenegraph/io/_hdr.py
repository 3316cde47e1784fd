"""Radiance HDR files: three mantissas and a shared exponent a pixel, in runs.

Source: Ward, "Real Pixels", Graphics Gems II, 1991; the format of Radiance's `color.c`.
"""

import os
import re

import numpy as np

from ._atomic import atomic_write
from ._errors import FileError
from ._read import require_regular


_SIZE = re.compile(rb"-Y (\d{1,6}) \+X (\d{1,6})\n")
# Lines between these lengths are written in runs, channel by channel.
_SHORTEST, _LONGEST = 8, 0x7FFF
# A run stands for at most 127 pixels with two bytes.
_MOST_PER_BYTE = 64


def read_hdr(path: str | os.PathLike) -> np.ndarray:
    """Reads a Radiance HDR file as linear light, float32, `height width 3`, row 0 at the top."""
    require_regular(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError as error:
        raise FileError(f"there is no picture {path}.") from error
    exposure, (height, width), start = _read_header(content, path)
    if height * width * 4 > _MOST_PER_BYTE * len(content):
        raise FileError(f"{path} is damaged: it is too short for {width} x {height} pixels.")
    try:
        pixels = _read_pixels(content, start, height, width)
    except (IndexError, ValueError) as error:
        raise FileError(f"{path} is damaged: its pixels end too early, or too late.") from error
    # value = mantissa / 256 * 2^(exponent - 128)
    scale = np.ldexp(1.0, pixels[..., 3].astype(int) - 136) * (pixels[..., 3] > 0) / exposure
    return (pixels[..., :3] * scale[..., None]).astype(np.float32)


def _read_header(content: bytes, path: str | os.PathLike) -> tuple[float, tuple[int, int], int]:
    """Returns the exposure, the height and width, and where the pixels begin."""
    head, blank, _ = content[: 1 << 16].partition(b"\n\n")
    size = _SIZE.match(content, len(head) + 2)
    if not content.startswith(b"#?") or not blank or size is None:
        raise FileError(
            f"{path} is no Radiance HDR picture with rows from the top and columns from the left."
        )
    if b"FORMAT=32-bit_rle_rgbe" not in head:
        raise FileError(f"{path} is not in RGB: only FORMAT=32-bit_rle_rgbe is read.")
    exposures = re.findall(rb"^EXPOSURE=\s*([0-9.eE+-]+)\s*$", head, re.MULTILINE)
    try:
        exposure = float(np.prod([float(x) for x in exposures]))
    except ValueError:
        exposure = 0.0
    height, width = (int(x) for x in size.groups())
    if not (height and width and 0 < exposure < np.inf):
        raise FileError(f"{path} is damaged: its size or exposure is not positive.")
    return exposure, (height, width), size.end()


def _read_pixels(content: bytes, at: int, height: int, width: int) -> np.ndarray:
    """Reads all lines, in runs or not."""
    begins = bytes([2, 2, width >> 8, width & 255])
    if not _SHORTEST <= width <= _LONGEST or content[at : at + 4] != begins:
        count = height * width * 4
        return np.frombuffer(content, np.uint8, count, at).reshape(height, width, 4)
    lines = np.empty((height, 4, width), np.uint8)
    for line in lines:
        if content[at : at + 4] != begins:
            raise ValueError
        at += 4
        for channel in line:
            at = _read_runs(content, at, channel)
    return np.moveaxis(lines, 1, 2)


def _read_runs(content: bytes, at: int, channel: np.ndarray) -> int:
    """Reads one channel of one line; returns where the next begins."""
    done = 0
    while done < len(channel):
        count = content[at]
        # Up to 128, so many numbers follow as they are; above, one that stands for count - 128.
        repeated = count > 128
        count = count - 128 if repeated else count
        length = 1 if repeated else count
        values = np.frombuffer(content, np.uint8, length, at + 1)
        if not 0 < count <= len(channel) - done:
            raise ValueError
        channel[done : done + count] = values
        done, at = done + count, at + 1 + length
    return at


def write_hdr(path: str | os.PathLike, light: np.ndarray) -> None:
    """Writes linear light, `height width 3`, as a Radiance HDR file; negative numbers become 0."""
    light = np.maximum(np.asarray(light, np.float32), 0)
    height, width, _ = light.shape
    # byte = value 256 / 2^exponent, of which the largest is from 128 to 255
    mantissa, exponent = np.frexp(np.max(light, axis=-1))
    scale = np.where(mantissa > 0, np.ldexp(256.0, -exponent), 0)
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = np.clip(light * scale[..., None], 0, 255)
    pixels[..., 3] = np.where(mantissa > 0, np.clip(exponent + 128, 0, 255), 0)
    with atomic_write(path) as beside, open(beside, "wb") as file:
        file.write(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n")
        file.write(f"-Y {height} +X {width}\n".encode())
        for line in pixels:
            file.write(_line(line) if _SHORTEST <= width <= _LONGEST else line.tobytes())


def _line(pixels: np.ndarray) -> bytes:
    """Returns one line as runs of up to 128 different values, channel by channel."""
    width = len(pixels)
    parts = [bytes([2, 2, width >> 8, width & 255])]
    for channel in pixels.T:
        for start in range(0, width, 128):
            part = channel[start : start + 128].tobytes()
            parts += [bytes([len(part)]), part]
    return b"".join(parts)
