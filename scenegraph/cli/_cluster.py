"""The arguments of several processes, on one host or many, that fit one scene together."""

import contextlib
import dataclasses
from collections.abc import Iterator

from ..parallel import end_if_lost, join


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that fit together: one for every GPU or host."""

    distributed: bool = False
    """Fit together with other processes, started alike; --out is a folder that all of them see.
    SLURM, Kubernetes and other clusters are found out; elsewhere, name the next three."""

    coordinator: str | None = None
    """HOST:PORT at which the first process can be reached by all."""

    num_processes: int | None = None
    """How many processes there are."""

    process_id: int | None = None
    """The number of this one, from 0."""

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Joins the other processes, and ends this one with a message if another is lost."""
        given = self.coordinator, self.num_processes, self.process_id
        if not self.distributed:
            if any(x is not None for x in given):
                raise ValueError(
                    "--coordinator, --num-processes and --process-id need --distributed."
                )
            yield
            return
        try:
            join(*given)
        except ValueError as error:
            raise ValueError(
                f"--distributed found no cluster ({error}) Outside of SLURM, Kubernetes and the "
                "like, give --coordinator HOST:PORT, --num-processes and --process-id."
            ) from error
        with end_if_lost(
            "Start all of them again with --resume to go on from the last checkpoint."
        ):
            yield
