"""GLB files that are cut or altered: a `FileError` or a model, in time and memory in proportion."""

import io
import time
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from scenegraph.io import DamagedFile, FileError
from scenegraph.models import read_model
from support.model_files import check_damaged, everything, pack_glb, write_everything


# Seconds, and bytes beyond those of the file: what numpy and Pillow need for anything.
LONGEST, LARGEST = 2.0, 2**26


def survives(path) -> bool:
    """Reads a file or refuses it, and returns whether it was read; nothing else may happen."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        read_model(path)
    except FileError as error:
        assert len(str(error)) < 600 and str(error).endswith((".", "]"))
        return False
    finally:
        taken, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < LONGEST and peak < LARGEST, (taken, peak)
    return True


def test_damage_at_random(tmp_path):
    check_damaged(tmp_path, range(60), survives)


@pytest.mark.slow
def test_a_thousand_damages_at_random(tmp_path):
    check_damaged(tmp_path, range(1000), survives)


def test_cut_after_every_tenth_byte(tmp_path):
    data = write_everything(tmp_path).read_bytes()
    path = tmp_path / "cut.glb"
    for end in range(0, len(data), 10):
        path.write_bytes(data[:end])
        with pytest.raises(DamagedFile, match="cut.glb"):
            read_model(path)


def test_cut_with_the_length_put_right(tmp_path):
    data = write_everything(tmp_path).read_bytes()
    path = tmp_path / "cut.glb"
    for end in range(12, len(data), 10):
        path.write_bytes(data[:8] + end.to_bytes(4, "little") + data[12:end])
        assert not survives(path)


def test_pictures_in_few_bytes(tmp_path):
    """A flat PNG of 9,400 x 9,400 has 260 KB, and 265 MB of texels."""
    file = io.BytesIO()
    Image.new("RGB", (9400, 9400)).save(file, "png")
    content, binary = everything()
    start = len(binary) + -len(binary) % 4
    view = {"buffer": 0, "byteOffset": start, "byteLength": len(file.getvalue())}
    content["bufferViews"][content["images"][0]["bufferView"]] = view
    binary = binary.ljust(start, b"\0") + file.getvalue()
    content["buffers"][0]["byteLength"] = len(binary)
    path = tmp_path / "file.glb"
    path.write_bytes(pack_glb(content, binary))
    with pytest.raises(FileError, match="too many"):
        read_model(path)


def test_numbers_of_many_kinds_in_the_place_of_each(tmp_path):
    """One value of the JSON at a time becomes something else."""
    content, binary = everything()
    path = tmp_path / "file.glb"
    rng, strange = np.random.default_rng(0), [-1, 2**63, 1e300, float("nan"), None, "", [], {}]

    def places(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield node, key
            if isinstance(node[key], dict | list):
                yield from places(node[key])

    for node, key in list(places(content)):
        before, node[key] = node[key], strange[rng.integers(len(strange))]
        path.write_bytes(pack_glb(content, binary))
        survives(path)
        node[key] = before
