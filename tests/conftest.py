import pathlib

import jax
import pytest
from hypothesis import settings


settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


TESTS = pathlib.Path(__file__).parent


# First, because afterwards those that are not asked for are left out.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the tests that were measured to be slow."""
    slow = tuple(slow_tests())
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(slow):
            item.add_marker(pytest.mark.slow)


def slow_tests() -> list[str]:
    """How the names of slow tests begin."""
    lines = (TESTS / "slow.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.fixture
def x64():
    """Runs a test in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Thousands of compiled programs would fill the memory; the cache on disk keeps them."""
    yield
    jax.clear_caches()
