import pytest

from scenegraph.rows import _target


@pytest.fixture
def without_kernels(monkeypatch):
    """Maps over rows as where llvmlite is missing."""
    monkeypatch.setattr(_target, "find_llvm", lambda: None)
