import json
import os
import pathlib
from typing import Any

from ._errors import FileError


def read_json(path: str | os.PathLike) -> Any:
    """Reads a JSON file.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    What it holds.

    **Errors:**

    `FileError` for a missing or malformed file, with the line.
    """
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise FileError(f"{path} is not valid JSON (line {error.lineno}): {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # bytes that are not text; absurd numbers
        raise FileError(f"{path} is not JSON text: {error}.") from error


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes a JSON file: beside it first, then renamed, so that it is never half there.

    **Arguments:**

    - `path`: of the file; its folder exists.
    - `value`: what JSON can hold.
    """
    target = pathlib.Path(path)
    beside = target.with_name(target.name + ".part")
    beside.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    os.replace(beside, target)
