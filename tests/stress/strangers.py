"""Data folders of strangers: an error that names the file, or exactly what the files say.

Of model files, see `models`.
"""

import math
import pathlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st

import scenegraph as sg
from scenegraph.data import load_multiscale
from scenegraph.io import FileError
from stress import folders
from stress.damage import no_longer_than
from stress.models import strange_models
from stress.spoils import CHANGES, spoilt_document, spoilt_picture, spoilt_table


SEEDS = st.integers(0, 2**32 - 1)


class Kind(NamedTuple):
    """A kind of file: how a folder with a good one is written, loaded and looked at."""

    write: Callable[[pathlib.Path], pathlib.Path]
    load: Callable[[pathlib.Path, str], sg.Views]
    is_right: Callable[[sg.Views, pathlib.Path], bool]
    changes: st.SearchStrategy
    spoil: Callable[[bytes, Any], bytes]
    # Which file is made strange, beside the listing; the listing itself by default.
    file: str = ""


BLENDER = folders.write_blender, sg.load_blender, folders.blender_is_right
MULTISCALE = folders.write_multiscale, load_multiscale, folders.multiscale_is_right
FACING = folders.write_facing, folders.load_facing, folders.facing_is_right
KINDS = {
    "transforms.json": Kind(*BLENDER, CHANGES | SEEDS, spoilt_document),
    "metadata.json": Kind(*MULTISCALE, CHANGES | SEEDS, spoilt_document),
    "poses_bounds.npy": Kind(*FACING, SEEDS, spoilt_table),
    "PNG": Kind(*BLENDER, SEEDS, spoilt_picture, "train/r_0.png"),
}


def outcome(kind: Kind, listing: pathlib.Path) -> str:
    """What became of a folder: `refused`, `right`, or something that must not be."""
    folder = listing.parent
    with no_longer_than(60):
        try:
            views = kind.load(folder, "train")
        except FileError as error:
            return "refused" if str(folder) in str(error) else f"does not name the file: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            return f"{type(error).__name__}: {error}"
    return "right" if kind.is_right(views, listing) else "OTHER NUMBERS"


def strange_files(name: str, examples: int, seconds: float = math.inf) -> dict[str, Any]:
    """Loads so many folders in which one file is strange, or as many as there is time for."""
    kind, begin = KINDS[name], time.perf_counter()
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        listing = kind.write(pathlib.Path(place))
        file = listing.parent / kind.file if kind.file else listing
        data = file.read_bytes()
        assert outcome(kind, listing) == "right"

        @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
        @given(kind.changes)
        def try_one(change: Any) -> None:
            if time.perf_counter() - begin > seconds:
                return
            file.write_bytes(kind.spoil(data, change))
            found = outcome(kind, listing)
            seen[found] += 1
            assert found in ("refused", "right"), f"{found} for {change}"

        try_one()
    return {**seen, "seconds": round(time.perf_counter() - begin, 1)}


def main(examples: int = 5000, minutes: float = 30.0) -> dict[str, Any]:
    """So many strange files of each kind, or as many as there is time for."""
    found = {kind: strange_files(kind, examples, 60 * minutes) for kind in KINDS}
    return {**found, "models": strange_models(examples, 60 * minutes, draw=True)}
