"""What tests of the command line share."""

from scenegraph.cli import main


def refused(arguments, capsys, *parts: str) -> None:
    """Exit code 2, and a last line in plain words that holds all `parts`."""
    assert main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    last = error.splitlines()[-1]
    assert "Traceback" not in error and last.startswith("scenegraph: ")
    for part in parts:
        assert part in last
