"""`scenegraph data make`."""

import jax
import numpy as np
import pytest

from scenegraph import diagnostics
from scenegraph.cli import main
from scenegraph.diagnostics import table_top
from support.command_line import refused


@pytest.fixture
def calls(monkeypatch):
    """Records what would be made."""
    seen = []

    def make(folder, **options):
        for done in range(4):
            options["progress"](done, 3)
        seen.append((folder, options))

    monkeypatch.setattr(diagnostics, "make_dataset", make)
    return seen


def test_flags_are_those_of_the_data_set(calls, tmp_path, capsys):
    flags = "--size 40 --views 7 --val 2 --test 3 --count 12 --seed 5 --normals".split()
    assert main(["data", "make", str(tmp_path / "set"), *flags]) == 0
    ((folder, options),) = calls
    assert folder == tmp_path / "set"
    wanted = {"size": 40, "train": 7, "val": 2, "test": 3, "seed": 5, "outputs": ["normal"]}
    assert {name: options[name] for name in wanted} == wanted
    pairs = zip(*map(jax.tree.leaves, (options["scene"], table_top(12, seed=5))), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("compiling") and "rendered 3 of 3 views" in lines[1]
    assert f"scenegraph fit {tmp_path / 'set'}" in lines[-1]


def test_folders_with_files_are_refused(calls, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("")
    refused(["data", "make", tmp_path], capsys, str(tmp_path), "not an empty folder")
    refused(["data", "make", tmp_path / "mine.txt"], capsys, "not an empty folder")
    assert not calls


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--views", 0], ["--views (`views`) must be between 1 and 1,000,000; got 0"]),
        (["--count", 3], ["at least 6 things", "got 3"]),
        (["--size", 0], ["--size (`size`) must be between 1 and 16,384; got 0"]),
        (["--val", -1], ["`val`", "got -1"]),
    ],
)
def test_wrong_numbers_are_refused(tmp_path, capsys, flags, parts):
    refused(["data", "make", tmp_path / "set", *flags], capsys, *parts)
    assert not (tmp_path / "set").exists()
