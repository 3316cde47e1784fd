import os
import pathlib

import jax


def remember_compiled_programs() -> None:
    """Keeps what JAX compiles in the user's cache, so that the next process need not compile it.

    The environment variable `JAX_COMPILATION_CACHE_DIR` goes before; empty, it switches this off.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(base) / "scenegraph" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
