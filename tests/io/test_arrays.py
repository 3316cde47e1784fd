"""NumPy files that somebody else wrote."""

import numpy as np
import pytest

from scenegraph.io import FileError, read_array


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8, ">f8"])
def test_numbers_of_any_kind(tmp_path, dtype):
    numbers = np.arange(12, dtype=dtype).reshape(3, 4)
    np.save(tmp_path / "a.npy", numbers)
    read = read_array(tmp_path / "a.npy")
    assert read.dtype == np.float64 and read.flags.writeable
    np.testing.assert_array_equal(read, numbers)


def test_order_of_the_axes(tmp_path):
    numbers = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "a.npy", numbers)
    np.testing.assert_array_equal(read_array(tmp_path / "a.npy"), numbers)


def test_missing(tmp_path):
    with pytest.raises(FileError, match="there is no file .*a.npy"):
        read_array(tmp_path / "a.npy")
    with pytest.raises(FileError, match="is a folder"):
        read_array(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"PK\x03\x04" + bytes(40), b"1 2 3\n" * 20],
)
def test_rubbish(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError, match="a.npy is damaged, or not a NumPy file"):
        read_array(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 'x'}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'shape': (1,)}",
        "__import__('os').abort()",
        "[" * 5000,
    ],
)
def test_headers_that_lie(tmp_path, header):
    text = header.encode().ljust(118) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(FileError, match="a.npy is damaged"):
        read_array(tmp_path / "a.npy")


@pytest.mark.parametrize("value", [True, 1j, "x", np.datetime64("2020-01-01")])
def test_what_is_no_number(tmp_path, value):
    np.save(tmp_path / "a.npy", np.array([value]))
    with pytest.raises(FileError, match="a.npy must hold real numbers"):
        read_array(tmp_path / "a.npy")
