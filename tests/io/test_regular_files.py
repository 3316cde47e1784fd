"""Pipes and devices are refused at once; archives whose members share bytes, too."""

import os
import pathlib
import struct
import zipfile

import numpy as np
import pytest

from scenegraph.io import (
    DamagedFile,
    FileError,
    read_archive,
    read_bytes,
    read_hdr,
    read_json,
    read_picture,
    write_archive,
)
from scenegraph.models import read_model


READERS = {
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
@pytest.mark.parametrize("name", [name for name in READERS if name != "a.obj"])
def test_devices_are_refused(name):
    with pytest.raises(FileError, match="/dev/zero is a pipe or a device"):
        READERS[name]("/dev/zero")


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
