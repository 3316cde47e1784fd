import sys

import jax


def say(text: str) -> None:
    """Writes a line to the error stream; of several processes, only the first does."""
    if jax.distributed.is_initialized() and jax.process_index() > 0:
        return
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
