"""The reasons for which pictures have no pose, in words."""

import os
import pathlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..io import read_picture
from ._pictures import measure_sharpness, Photograph, Sharpness
from ._records import UnplacedPicture


# A picture is blurred whose Laplacian varies less than this share of the median picture's.
_BLURRED = 0.2
# Fewer verified matches with any other picture than these do not give a pose.
_FEW = 30
# Rays that meet at less than these angles, in degrees, say little, and nothing, of depth; and the
# fewest points that make a model.
_FLAT, _ONE_PLACE, _POINTS = 2.5, 1.0, 20


def has_depth(found: dict[str, Any]) -> bool:
    """Returns true if the largest model has points that are seen from places apart."""
    models = found["models"]
    return bool(models) and models[0]["points"] >= _POINTS and models[0]["angle"] >= _ONE_PLACE


def explain_no_model(
    pictures: Sequence[Photograph], found: dict[str, Any], small: pathlib.Path, work: pathlib.Path
) -> str:
    """Says why no picture has a pose."""
    kept = f"(features and matches are kept in {work})"
    kinds = found["kinds"]
    flat = sum(kinds.get(kind, 0) for kind in ("PANORAMIC", "PLANAR_OR_PANORAMIC", "PLANAR"))
    sharpness = _measure(pictures, small)
    if all(one.is_empty for one in sharpness):
        return f"the {len(pictures)} pictures are empty: all of their pixels are next to alike."
    if not kinds:
        return (
            f"the {len(pictures)} pictures have nothing in common: no two of them show enough of "
            f"the same things. Take more, each of which overlaps the one before by two thirds "
            f"{kept}."
        )
    if found["still"]:
        return (
            f"the camera keeps still in the {len(pictures)} pictures, and what moves before it is "
            "too little to find poses by. Fill the pictures with the thing that turns, or walk "
            f"around it {kept}."
        )
    flat = sum(kinds.values()) if found["models"] else flat
    if flat >= 0.5 * sum(kinds.values()):
        return (
            f"the {len(pictures)} pictures overlap, but show no depth: they were taken from one "
            "place, of something flat, or too far apart. Walk around the scene in small steps "
            f"instead of turning the camera {kept}."
        )
    most = max(found["inliers"].values())
    return (
        f"no poses could be found for the {len(pictures)} pictures: {sum(kinds.values())} pairs "
        f"match, with {most} points at most, too few or from places too close by. Take more "
        f"pictures, with steps between them that are neither tiny nor large {kept}."
    )


def explain_unplaced(
    pictures: Sequence[Photograph], found: dict[str, Any], small: pathlib.Path
) -> list[UnplacedPicture]:
    """Says why each picture that is not in the largest model has no pose."""
    models = found["models"]
    placed = set(models[0]["names"])
    missing = [one for one in pictures if one.key not in placed]
    if not missing:
        return []
    every = dict(zip((one.key for one in pictures), _measure(pictures, small), strict=True))
    usual = float(np.median([one.laplacian for one in every.values()]))
    parts = {name: len(x["names"]) for x in reversed(models[1:]) for name in x["names"]}
    return [
        UnplacedPicture(one.name, _reason(one.key, every[one.key], usual, found, parts))
        for one in missing
    ]


def _reason(
    key: str, sharpness: Sharpness, usual: float, found: dict[str, Any], parts: dict[str, int]
) -> str:
    matches = found["inliers"].get(key, 0)
    if sharpness.is_empty:
        return "it is empty: its pixels are next to alike"
    if key in parts:
        return f"it belongs to another part of {parts[key]} pictures, unconnected to the largest"
    few = f"{matches} points at most match another picture"
    if sharpness.laplacian < _BLURRED * usual:
        return f"it is blurred; {few}"
    if matches < _FEW:
        return f"too few matches: {few}"
    return f"no place fits it, though {matches} points match another picture"


def note_model(found: dict[str, Any]) -> tuple[str, ...]:
    """Says what is odd about the models that were found."""
    models, notes = found["models"], []
    if found["still"]:
        notes.append(
            "the camera keeps still, and a thing turns before it: poses are those of a camera that "
            "goes around the thing. A fit shows what keeps still as fog; hang something plain "
            "behind and below the thing, or mask the rest (a folder `masks` in the capture)"
        )
    if len(models) > 1:
        sizes = ", ".join(str(len(one["names"])) for one in models)
        notes.append(
            f"the pictures fall into {len(models)} unconnected parts, of {sizes} pictures: the "
            "largest is taken. Pictures that show two parts at once would join them"
        )
    if models[0]["angle"] < _FLAT:
        notes.append(
            f"points are seen under angles of {models[0]['angle']:.1f} degrees only: the pictures "
            "were taken from next to one place, and show little depth"
        )
    return tuple(notes)


def _measure(pictures: Sequence[Photograph], small: pathlib.Path) -> list[Sharpness]:
    """Measures the small copies of pictures."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(
            pool.map(lambda one: measure_sharpness(read_picture(small / one.key)), pictures)
        )
