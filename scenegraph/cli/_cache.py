import os
import pathlib

import jax


def remember_compiled_programs() -> None:
    """Keeps compiled programs in the user's cache, unless `JAX_COMPILATION_CACHE_DIR` is set."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(base) / "scenegraph" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)
