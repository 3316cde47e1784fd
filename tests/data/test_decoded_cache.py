"""Decoded pictures come back from the cache only while their content is the same."""

import numpy as np
import pytest

from scenegraph.images import shrink
from scenegraph.pixels import _decoded_cache
from scenegraph.pixels._decoded_cache import recall_pixels


SHAPES = [(2, 3, 4), (2, 3, 4)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(_decoded_cache, "_LEAST", 1)
    paths = [tmp_path / f"{name}.png" for name in "ab"]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


class Decoder:
    """Counts how often it is called."""

    def __init__(self, seed=0):
        self.calls = 0
        self.pixels = np.random.default_rng(seed).random((12, 4), np.float32)

    def __call__(self):
        self.calls += 1
        return self.pixels, SHAPES


def recall(files, decoder, folder, settings="4", size=192):
    pixels, shapes = recall_pixels(files, settings, size, folder, decoder)
    np.testing.assert_array_equal(pixels, decoder.pixels)
    assert shapes == SHAPES


def test_the_same_content_is_decoded_once(files, tmp_path):
    decoder, folder = Decoder(), tmp_path / "cache"
    recall(files, decoder, folder)
    moved = [path.rename(path.with_suffix(".moved")) for path in files]
    recall(moved, decoder, folder)
    assert decoder.calls == 1


def test_other_content_order_or_settings_are_decoded_anew(files, tmp_path):
    folder = tmp_path / "cache"
    recall(files, Decoder(0), folder)
    recall(files[::-1], Decoder(1), folder)
    recall(files, Decoder(2), folder, settings="2")
    files[1].write_bytes(b"changed")
    recall(files, Decoder(3), folder)
    assert len(list(folder.glob("*.bin"))) == 4


def test_a_damaged_entry_is_made_anew(files, tmp_path):
    decoder, folder = Decoder(), tmp_path / "cache"
    recall(files, decoder, folder)
    (entry,) = folder.glob("*.bin")
    entry.write_bytes(entry.read_bytes()[:-1])
    recall(files, decoder, folder)
    recall(files, decoder, folder)
    assert decoder.calls == 2


def test_the_cache_is_bounded(files, tmp_path, monkeypatch):
    """What was not used for longest goes first."""
    monkeypatch.setattr(_decoded_cache, "_MOST", 2 * 192)
    folder = tmp_path / "cache"
    for number in range(4):
        recall(files, Decoder(number), folder, settings=str(number))
    assert len(list(folder.glob("*.bin"))) == len(list(folder.glob("*.json"))) == 2
    last = Decoder(3)
    recall(files, last, folder, settings="3")
    assert last.calls == 0


def test_small_and_huge_ones_are_not_kept(files, tmp_path):
    for size in (0, 2**40):
        decoder = Decoder()
        recall(files, decoder, tmp_path / "cache", size=size)
        assert decoder.calls == 1
    assert not (tmp_path / "cache").exists()


def test_a_full_disk_keeps_nothing(files, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_decoded_cache, "write_mapped", full)
    recall(files, Decoder(), tmp_path / "cache")


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("factor", [2, 3, 7, 300])
@pytest.mark.parametrize("straight", [False, True])
def test_bytes_are_averaged_as_numbers_are(channels, factor, straight):
    height, width = (2 * factor + 1, factor + factor // 2)
    picture = np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)
    picture[:factor, :factor] = 255
    found = shrink(picture, factor, straight_alpha=straight)
    wanted = shrink(picture / 255.0, factor, straight_alpha=straight)
    assert found.dtype == np.float32 and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
