import dataclasses
from typing import Annotated

import tyro

from ._convert_multiscale import ConvertMultiscale


# A union of one is no union for tyro: `None`, which is not shown, makes it one.
_What = (
    Annotated[ConvertMultiscale, tyro.conf.subcommand("multiscale")]
    | Annotated[None, tyro.conf.Suppress]
)


@dataclasses.dataclass(frozen=True)
class Convert:
    """Make data of one format out of data of another."""

    what: Annotated[_What, tyro.conf.arg(name="")]

    def main(self) -> None:
        """Converts."""
        if self.what is not None:
            self.what.main()
