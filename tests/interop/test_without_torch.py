"""PyTorch is an extra; `test_architecture.py` has that importing the library leaves it alone."""

import sys

import pytest

import scenegraph as sg


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("_torch_module", "_tensors"):
        monkeypatch.delitem(sys.modules, f"scenegraph.interop.{name}", raising=False)
    with pytest.raises(ImportError, match=r"pip install scenegraph\[torch\]"):
        sg.as_torch_module(sg.Invert())
