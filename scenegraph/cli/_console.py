import sys

import jax


def say(text: str) -> None:
    """Tells the user something, on the error stream, so that output stays clean. Of several
    processes only the first speaks.

    **Arguments:**

    - `text`: one line.
    """
    if jax.distributed.is_initialized() and jax.process_index() > 0:
        return
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
