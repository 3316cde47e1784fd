"""The command line: one dataclass a command."""

from ._main import main as main
