import json
import os
import pathlib
from typing import Any

from ._atomic import has_other_names, open_in_place, replace_file
from ._errors import FileError
from ._read import require_regular


def read_json(path: str | os.PathLike) -> Any:
    """Reads a JSON file."""
    require_regular(path)
    try:
        # Some programs begin their files with a byte-order mark.
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise FileError(f"{path} is not valid JSON (line {error.lineno}): {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # bytes that are not text; absurd numbers
        raise FileError(f"{path} is not JSON text: {error}.") from error


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes a JSON file, all or nothing."""
    text = json.dumps(value, indent=2) + "\n"
    replace_file(path, lambda file: file.write(text.encode()))


def append_json(path: str | os.PathLike, value: Any) -> None:
    """Appends a line of JSON to a file, which is made if there is none."""
    # After an error, half a line may stand at the end of the file.
    try:
        with open(open_in_place(path), "ab+") as file:
            line = json.dumps(value).encode() + b"\n"
            if has_other_names(file.fileno()):
                file.seek(0)
                whole = file.read() + line
                replace_file(path, lambda own: own.write(whole))
            else:
                file.write(line)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
