"""Pictures of phones: HEIC, EXIF, small copies, and the pairs that are matched."""

import itertools

import numpy as np
import pytest
from PIL import Image as PillowImage

from scenegraph.io import read_lens_tags, read_picture, read_small_picture
from scenegraph.photographs._find_poses import _share_lenses, Request
from scenegraph.photographs._pairs import choose_pairs
from scenegraph.photographs._pictures import copied_names, list_photographs, measure_sharpness


def _gradient(width: int, height: int) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return np.stack([x, y, 255 - x], axis=-1).astype(np.uint8)


def _exif(focal: int | None, orientation: int = 1) -> PillowImage.Exif:
    exif = PillowImage.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112] = "Maker", "Phone 3", orientation
    if focal is not None:
        exif.get_ifd(0x8769)[0xA405] = focal
    return exif


def test_heic_is_read_as_everything_else(tmp_path):
    heif = pytest.importorskip("pillow_heif", reason="HEIC needs the extra photos")
    picture = PillowImage.fromarray(_gradient(96, 64))
    heif.from_pillow(picture).save(tmp_path / "a.heic", quality=95)
    read = read_picture(tmp_path / "a.heic")
    assert read.shape == (64, 96, 3)
    assert np.abs(read.astype(float) - np.asarray(picture)).mean() < 4
    (photograph,) = list_photographs(tmp_path).pictures
    assert (photograph.width, photograph.height) == (96, 64)
    assert copied_names([photograph]) == {"a.heic": "a.jpg"}


def test_exif_says_what_took_a_picture(tmp_path):
    file = tmp_path / "a.jpg"
    PillowImage.fromarray(_gradient(60, 40)).save(file, exif=_exif(26))
    camera, focal = read_lens_tags(file)
    # 26 mm of the diagonal of 36 x 24 mm.
    assert camera == "Maker Phone 3" and focal == pytest.approx(26 / np.hypot(36, 24), rel=1e-4)
    PillowImage.fromarray(_gradient(60, 40)).save(tmp_path / "b.png")
    assert read_lens_tags(tmp_path / "b.png") == ("", None)


def test_lenses_are_shared_by_size_and_exif(tmp_path):
    sizes_and_focals = [(60, 40, 26), (60, 40, 26), (40, 60, 26), (60, 40, 52), (60, 40, None)]
    for number, (width, height, focal) in enumerate(sizes_and_focals):
        picture = PillowImage.fromarray(_gradient(width, height) // (number + 1))
        picture.save(tmp_path / f"{number}.jpg", exif=_exif(focal))
    request = Request(1000, 100, "auto", "incremental", None)
    shared = _share_lenses(list_photographs(tmp_path).pictures, request)
    assert [len(group["names"]) for group in shared] == [2, 1, 1, 1]
    focal = float(shared[0]["parameters"].split(",")[0])
    assert focal == pytest.approx(26 / np.hypot(36, 24) * np.hypot(60, 40), rel=0.02)
    assert shared[3]["parameters"] == ""


def test_small_copies_keep_what_is_seen(tmp_path):
    PillowImage.fromarray(_gradient(1200, 800)).save(tmp_path / "a.jpg", quality=95)
    small = read_small_picture(tmp_path / "a.jpg", 300)
    assert small.shape == (200, 300, 3)
    assert np.abs(small.astype(float) - _gradient(300, 200)).mean() < 3
    assert read_small_picture(tmp_path / "a.jpg", 5000).shape == (800, 1200, 3)


def test_copies_have_names_of_their_own(tmp_path):
    for name in ("a.png", "a.webp", "b.tif"):
        color = (len(name), ord(name[0]), ord(name[2]))
        PillowImage.new("RGB", (9, 7), color).save(tmp_path / name)
    names = copied_names(list_photographs(tmp_path).pictures)
    assert names == {"a.png": "a.png", "a.webp": "a.webp.png", "b.tif": "b.png"}


def test_sharpness_falls_with_blur():
    sharp = np.random.default_rng(0).integers(0, 255, (64, 64, 3)).astype(np.uint8)
    blurred = (sharp[1:].astype(int) + sharp[:-1]) // 2
    assert measure_sharpness(blurred).laplacian < 0.8 * measure_sharpness(sharp).laplacian
    assert measure_sharpness(np.zeros((8, 8))).is_empty


def test_all_pairs_of_few_pictures():
    assert choose_pairs(30, sequence=False) == list(itertools.combinations(range(30), 2))


@pytest.mark.parametrize("count, sequence", [(100, True), (1000, True), (600, False)])
def test_pairs_of_a_sequence(count, sequence):
    pairs = choose_pairs(count, sequence=sequence)
    assert len(set(pairs)) == len(pairs) and all(0 <= a < b < count for a, b in pairs)
    assert {(a, a + 1) for a in range(count - 1)} <= set(pairs)
    assert (0, max(b for a, b in pairs if a == 0)) in pairs
    # Far less than all, and the first picture meets one near the end.
    assert len(pairs) < 0.5 * count * (count - 1) / 2
    assert max(b for a, b in pairs if a == 0) > 0.9 * count
