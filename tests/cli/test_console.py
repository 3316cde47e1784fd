"""What the command line prints: escapes in names, terminals of few characters, closed pipes."""

import io
import shlex
import subprocess
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


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("scenegraph presets | head -c 0", "141"),
        ("scenegraph --help | head -c 0", "141"),
        ("scenegraph presets >&-", "0"),
        ("scenegraph fit --help >&- 2>&-", "0"),
        ("scenegraph fit x --width 0 2>&-", "2"),
        ("PYTHONIOENCODING=ascii LC_ALL=C scenegraph presets | cat >/dev/null", "0"),
        ("PYTHONIOENCODING=ascii LC_ALL=C scenegraph fit --help | cat >/dev/null", "0"),
    ],
)
def test_streams_of_a_shell(tmp_path, command, code):
    """Closed, broken or of few characters; nothing is said of it."""
    python = f"{shlex.quote(sys.executable)} -m scenegraph"
    script = f'{command.replace("scenegraph", python)}; echo "${{PIPESTATUS[0]}}"'
    # Output is closed before anything is written.
    script = script.replace("| head -c 0", "> >(exec true)") if code == "141" else script
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (code, "")


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
