import ctypes
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


# Tracing makes many objects that stay, and to search all of them for garbage takes seconds.
gc.set_threshold(50_000, 50, 1_000)


def pytest_collection_finish():
    """Leaves modules and tests out of all later searches for garbage."""
    gc.collect()
    gc.freeze()


# Whenever the process's memory has grown by so many bytes, compiled programs are forgotten; also
# before their pieces are as many as Linux allows a process to map (65,530), which would end it.
MUCH, MANY_PIECES = 2 * 2**30, 30_000
limit = MUCH


@pytest.fixture(autouse=True)
def forget_compiled_programs(request):
    """Thousands of compiled programs would fill the memory; the cache on disk keeps them."""
    global limit
    yield
    # Counting pieces takes milliseconds; one slow test may have half of all that there may be.
    if request.node.get_closest_marker("slow") and count_pieces() > MANY_PIECES:
        forget()
    if resident_memory() > limit:
        forget()
        # Little of the memory goes back to the system: it is used again.
        limit = max(MUCH, resident_memory() + MUCH / 2)


@pytest.fixture(autouse=True, scope="module")
def forget_pieces():
    """Counted once a module of quick tests, which have fewer."""
    yield
    if count_pieces() > MANY_PIECES:
        forget()


def forget():
    jax.clear_caches()
    gc.collect()
    # Without it, glibc keeps most of what programs had.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def count_pieces() -> int:
    """The number of mapped pieces of memory; none where the system does not say."""
    maps = pathlib.Path("/proc/self/maps")
    return len(maps.read_bytes().splitlines()) if maps.exists() else 0


def resident_memory() -> float:
    """Bytes; unlimited where the system does not say, so that programs are forgotten at once."""
    statm = pathlib.Path("/proc/self/statm")
    pages = int(statm.read_text().split()[1]) if statm.exists() else float("inf")
    return pages * resource.getpagesize()
