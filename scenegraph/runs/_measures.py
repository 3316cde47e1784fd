"""The metrics that need packages of their own."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..io import FileError, import_extra, MissingExtra
from ..losses import flip, load_lpips


@dataclasses.dataclass(frozen=True)
class Measures:
    """What pictures are compared by, beside PSNR and SSIM.

    **Arguments:**

    - `flip`, `lpips`: functions of two arrays of colours that return a number; `None` leaves one
      out.
    - `missing`: why those are left out that are, in words for the user.
    """

    flip: Callable[[Any, Any], float] | None = None
    lpips: Callable[[Any, Any], float] | None = None
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)


def find_measures(
    *, lpips: bool = True, lpips_weights: str | os.PathLike | None = None
) -> Measures:
    """All metrics that can be computed with what is installed.

    **Arguments:**

    - `lpips`: whether LPIPS is wanted. Keyword only argument.
    - `lpips_weights`: as for `load_lpips`. Keyword only argument.

    **Returns:**

    The metrics; those that cannot be computed are named with the reason.

    **Errors:**

    If weights are named: `FileError` if they are not there, or something else; `MissingExtra` if
    the packages for them are not there.
    """
    found, missing = {}, {}
    try:
        import_extra("flip_evaluator", "metrics", "FLIP")
        found["flip"] = flip
    except MissingExtra as error:
        missing["flip"] = str(error)
    if not lpips:
        missing["lpips"] = "LPIPS was not asked for"
    try:
        found |= {"lpips": load_lpips(lpips_weights)} if lpips else {}
    except (MissingExtra, FileError) as error:
        if lpips_weights is not None:
            raise
        missing["lpips"] = str(error)
    if "lpips" in missing:
        missing["average"] = "the average error needs LPIPS"
    return Measures(**found, missing=missing)
