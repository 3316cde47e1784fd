import pytest

from scenegraph.rows import _target


@pytest.fixture
def without_kernels(monkeypatch):
    """Maps over rows as where llvmlite is missing."""
    _target.is_available.cache_clear()
    monkeypatch.setattr(_target, "find_llvm", lambda: None)
    yield
    _target.is_available.cache_clear()
