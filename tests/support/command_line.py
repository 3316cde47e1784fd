"""What tests of the command line share."""

import pathlib

from scenegraph.cli import main


def fit_pictures(folder: pathlib.Path, data: pathlib.Path, steps: int, flags) -> pathlib.Path:
    """Fits a folder of pictures in a few steps; returns the run folder, which is new."""
    run = folder / "run"
    assert main(["fit", str(data), "--out", str(run), "--steps", str(steps), *flags]) == 0
    return run


def refused(arguments, capsys, *parts: str) -> None:
    """Exit code 2, and a last line in plain words that holds all `parts`."""
    assert main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    last = error.splitlines()[-1]
    assert "Traceback" not in error and last.startswith("scenegraph: ")
    for part in parts:
        assert part in last
