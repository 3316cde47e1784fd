import sys


def say(text: str) -> None:
    """Tells the user something, on the error stream, so that output stays clean.

    **Arguments:**

    - `text`: one line.
    """
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
