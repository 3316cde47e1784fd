import gc
import pathlib
import resource

import jax
import pytest
from hypothesis import settings


settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture
def x64():
    """Runs a test in double precision."""
    with jax.enable_x64(True):
        yield


# Tracing makes many objects that stay. To search them for garbage as often as Python does unasked
# takes a twentieth of the time.
gc.set_threshold(50_000, 50, 50)

# Of the process's memory, in bytes; from there on, compiled programs are forgotten.
MUCH = 2 * 2**30


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Thousands of compiled programs would fill the memory; the cache on disk keeps them."""
    yield
    if resident_memory() > MUCH:
        jax.clear_caches()


def resident_memory() -> float:
    """Bytes; unlimited where the system does not say, so that programs are forgotten at once."""
    statm = pathlib.Path("/proc/self/statm")
    pages = int(statm.read_text().split()[1]) if statm.exists() else float("inf")
    return pages * resource.getpagesize()
