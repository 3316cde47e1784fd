import contextlib
import os
import pathlib
from typing import Any


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Any:
    """A place beside a file to write to; when all is written, it becomes the file.

    So a file is never half there, whatever happens.

    **Arguments:**

    - `path`: of the file; its folder exists.

    **Returns:**

    A context whose value is the place; it has the same ending.
    """
    target = pathlib.Path(path)
    beside = target.with_name(f"{target.stem}.part{target.suffix}")
    try:
        yield beside
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
