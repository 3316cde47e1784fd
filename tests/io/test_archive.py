"""The one file format of scenes and checkpoints."""

import io
import json
import zipfile

import numpy as np
import pytest

from scenegraph.io import DamagedFile, FileError, read_archive, read_header, write_archive


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(3, np.int64),
    np.zeros((0, 2), bool),
    np.array([1.5, np.nan, np.inf]),
]


@pytest.fixture
def path(tmp_path):
    write_archive(tmp_path / "file.sg", {"name": "ä", "sizes": [1, 2]}, ARRAYS)
    return tmp_path / "file.sg"


def test_there_and_back(path):
    header, arrays = read_archive(path)
    assert header == {"name": "ä", "sizes": [1, 2]}
    assert header == read_header(path) and len(arrays) == len(ARRAYS)
    for found, expected in zip(arrays, ARRAYS, strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_nothing_is_left_beside_the_file(path):
    write_archive(path, {"second": True}, [])
    assert read_archive(path) == ({"second": True}, [])
    assert [file.name for file in path.parent.iterdir()] == ["file.sg"]


def test_a_write_that_fails_leaves_the_file_as_it_was(path):
    with pytest.raises(TypeError):
        write_archive(path, {"not json": object()}, [])
    assert read_archive(path)[0]["name"] == "ä"


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match="no file .*nothing.sg"):
        read_archive(tmp_path / "nothing.sg")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_file(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(FileError, match="file.sg is damaged"):
        read_archive(path)


def test_altered_bytes_are_noticed(path):
    data = bytearray(path.read_bytes())
    place = data.find(ARRAYS[0].tobytes())
    assert place > 0
    data[place + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="file.sg is damaged"):
        read_archive(path)


def rewritten(path, name, data, compression=zipfile.ZIP_STORED):
    """The archive with one member in place of another, and with all its own checksums right."""
    with zipfile.ZipFile(path) as archive:
        members = {other: archive.read(other) for other in archive.namelist()}
    members[name] = data
    with zipfile.ZipFile(path, "w", compression) as archive:
        for other, content in members.items():
            archive.writestr(other, content)


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("name, data", [("0.npy", npy(ARRAYS[0] + 1)), ("sha256", b"0" * 64)])
def test_digest_is_over_everything(path, name, data):
    rewritten(path, name, data)
    with pytest.raises(DamagedFile, match="file.sg is damaged.*its checksum is wrong"):
        read_archive(path)


def test_header_is_under_the_digest(path):
    rewritten(path, "header.json", json.dumps({"digest": "sha256", "name": "b"}).encode())
    with pytest.raises(DamagedFile, match="its checksum is wrong"):
        read_archive(path)


def test_files_of_the_first_version_have_no_digest(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", '{"format": 1}')
        archive.writestr("0.npy", npy(ARRAYS[0]))
    header, arrays = read_archive(path)
    assert header == {"format": 1} and np.array_equal(arrays[0], ARRAYS[0])


def test_nothing_is_blown_up(path):
    """A small file of a stranger's cannot fill the memory."""
    rewritten(path, "0.npy", npy(np.zeros(10**6)), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(DamagedFile, match="compressed"):
        read_archive(path)
    large = npy(np.zeros(4)).replace(b"(4,)", b"(4000000000000,)").replace(b" " * 12, b"", 1)
    rewritten(path, "0.npy", large)
    with pytest.raises(DamagedFile, match="shape .4000000000000,. has 4 numbers"):
        read_archive(path)


@pytest.mark.parametrize("content", [b"rubbish" * 50, b"PK\x05\x06" + b"\0" * 18])
def test_other_files(path, content):
    path.write_bytes(content)
    with pytest.raises(FileError, match="file.sg is damaged or not"):
        read_archive(path)


def test_archive_whose_header_is_not_an_object(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps([1, 2]))
    with pytest.raises(FileError, match="header is not an object"):
        read_archive(path)


def test_objects_are_never_unpickled(path, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "boom"), "w"))

    np.save(tmp_path / "0.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.write(tmp_path / "0.npy", "0.npy")
    with pytest.raises(FileError, match="holds objects"):
        read_archive(path)
    assert not (tmp_path / "boom").exists()
