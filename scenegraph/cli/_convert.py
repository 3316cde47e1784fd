import dataclasses
from typing import Annotated

import tyro

from ._convert_colmap import ConvertColmap
from ._convert_multiscale import ConvertMultiscale


_What = (
    Annotated[ConvertColmap, tyro.conf.subcommand("colmap")]
    | Annotated[ConvertMultiscale, tyro.conf.subcommand("multiscale")]
)


@dataclasses.dataclass(frozen=True)
class Convert:
    """Convert data from one format to another."""

    what: Annotated[_What, tyro.conf.arg(name="")]

    def main(self) -> None:
        """Converts."""
        self.what.main()
