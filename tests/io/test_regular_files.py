"""Pipes and devices are refused at once; archives whose members share bytes, too."""

import os
import pathlib
import struct
import subprocess
import zipfile

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import read_camera_path
from scenegraph.io import (
    DamagedFile,
    FileError,
    read_archive,
    read_array,
    read_bytes,
    read_exr,
    read_hdr,
    read_header,
    read_json,
    read_picture,
    read_picture_header,
    write_archive,
)
from scenegraph.io._colmap import _lines
from scenegraph.models import read_model
from scenegraph.pixels._decoded_cache import _hash_file
from scenegraph.runs import read_log


CAMERA = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.7, 4, 4)
READERS = {
    "a.exr": read_exr,
    "a.npy": read_array,
    "header.png": read_picture_header,
    "header.sg": read_header,
    "cameras.txt": lambda path: list(_lines(pathlib.Path(path))),
    "metrics.jsonl": read_log,
    "path.json": lambda path: read_camera_path(path, CAMERA),
    "cached.png": lambda path: _hash_file(pathlib.Path(path)),
    "b.sg": sg.load,
    "b.png": sg.Image.load,
    "b.exr": sg.Image.load,
    "b.hdr": sg.Image.load,
    "a.json": read_json,
    "a.png": read_picture,
    "a.hdr": read_hdr,
    "a.sg": read_archive,
    "a.bin": lambda path: read_bytes(pathlib.Path(path)),
    "a.obj": read_model,
}


@pytest.mark.parametrize("name", READERS)
def test_pipes_are_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match=name):
        READERS[name](tmp_path / name)


@pytest.mark.skipif(not pathlib.Path("/dev/zero").exists(), reason="needs /dev/zero")
@pytest.mark.parametrize("name", [x for x in READERS if x != "a.obj" and x[0] != "b"])
def test_devices_are_refused(name):
    with pytest.raises(FileError, match="/dev/zero is a pipe or a device"):
        READERS[name]("/dev/zero")


@pytest.mark.parametrize("name", READERS)
def test_folders_are_refused_by_name(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(FileError, match=name):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", ["a.png", "a.eps", "a.jpg", "a.tif"])
def test_no_program_is_run_for_a_picture(tmp_path, monkeypatch, name):
    """Pillow would let Ghostscript draw what is PostScript, whatever its name."""
    (tmp_path / name).write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n%%EOF\n"
    )
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was run"))
    for read in (read_picture, read_picture_header):
        with pytest.raises(FileError, match=name):
            read(tmp_path / name)


def test_members_that_share_bytes_are_refused(tmp_path):
    """The directory of the archive names one member's bytes fifty times."""
    path = tmp_path / "a.sg"
    write_archive(path, {"a": 1}, [np.zeros(10_000, np.float32)])
    assert len(read_archive(path)[1]) == 1
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("0.npy")
    data = path.read_bytes()
    start = data.index(b"PK\x01\x02")
    end = data.rindex(b"PK\x05\x06")
    entries = data[start:end]
    at = entries.index(b"0.npy") - 46
    entry = entries[at : at + 46 + len(member.filename)]
    copies = [entry.replace(b"0.npy", b"%05d" % i) for i in range(50)]
    directory = entries + b"".join(copies)
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 53, 53, len(directory), start, 0)
    path.write_bytes(data[:start] + directory + tail)
    with pytest.raises(DamagedFile, match="longer than the file"):
        read_archive(path)
