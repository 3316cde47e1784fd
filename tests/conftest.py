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
