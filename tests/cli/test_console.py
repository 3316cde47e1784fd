"""What the command line prints: escapes in names, terminals of few characters, closed pipes."""

import io
import sys

import pytest

import scenegraph as sg
from scenegraph.cli import main
from scenegraph.cli._console import printable, show


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a plain line, with ä and √", "a plain line, with ä and √"),
        ("two\nlines\tof text", "two\nlines\tof text"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("bell\a, back\b, \x9b31m", r"bell\x07, back\x08, \x9b31m"),
        ("name\u202egnp.exe", r"name\u202egnp.exe"),
    ],
)
def test_control_characters_are_codes(text, shown):
    assert printable(text) == shown


def test_names_in_messages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "no\x1b[31m folder", "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert "\x1b" not in error and r"no\x1b[31m folder" in error


def test_terminals_of_few_characters(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    show("31 ± 2 dB")
    stream.flush()
    assert stream.buffer.getvalue() == b"31 \\xb1 2 dB\n"


def test_a_pipe_that_nobody_reads(tmp_path, monkeypatch, capsys):
    """As of `scenegraph inspect SCENE | head -0`: quietly, with the code of SIGPIPE."""

    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    path = tmp_path / "scene.sg"
    sg.save(sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(), [0.5, 0.5, 0.5]))), path)
    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["inspect", str(path)]) == 141
    assert capsys.readouterr().err == ""
