"""Splits of pictures that come in one list: every n-th is held out, or those that are named."""

import pathlib
from collections.abc import Sequence

from ..io import FileError


def choose_frames(
    where: object,
    names: Sequence[str],
    split: str,
    hold_every: int,
    held_out: Sequence[str | int],
) -> list[int]:
    """Returns the numbers of the training pictures, or of the others; refuses to return none.

    `held_out` has names, with or without folder and ending, or numbers in the order of `names`. If
    it is empty, the first of each `hold_every` is held out. `where` is for messages.
    """
    require_rest(hold_every)
    if held_out:
        out = {index for one in held_out for index in _find(where, names, str(one))}
    else:
        out = set(range(0, len(names), hold_every))
    chosen = [index for index in range(len(names)) if (index in out) != (split == "train")]
    if not chosen:
        raise FileError(
            f"{where}: its {len(names)} pictures leave none for the split {split!r}; choose others "
            "by --held-out or --hold-every."
        )
    return chosen


def require_rest(hold_every: int) -> None:
    """Raises `ValueError` for a number that holds out every picture."""
    if hold_every < 2:
        raise ValueError(f"`hold_every` must be at least 2, or nothing is left; got {hold_every}.")


def _find(where: object, names: Sequence[str], wanted: str) -> list[int]:
    """Returns the pictures of a name, or that of a number."""
    # A whole name goes before a file's name, and that before one without ending, and a number.
    forms = (str, lambda x: pathlib.PurePosixPath(x).name, lambda x: pathlib.PurePosixPath(x).stem)
    for form in forms:
        found = [index for index, name in enumerate(names) if form(name) == wanted]
        if found:
            return found
    if wanted.isdecimal() and int(wanted) < len(names):
        return [int(wanted)]
    raise FileError(
        f"{where}: no picture is named {wanted!r}, and numbers of pictures go from 0 to "
        f"{len(names) - 1}; correct --held-out (`held_out`)."
    )
