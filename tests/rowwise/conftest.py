import pytest

from scenegraph.rowwise import _native_target


@pytest.fixture
def without_kernels(monkeypatch):
    """Maps over rows as where llvmlite is missing."""
    monkeypatch.setattr(_native_target, "llvm", None)
