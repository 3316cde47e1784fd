"""The arguments of several processes, on one host or many, that fit one scene together."""

import contextlib
import dataclasses
from collections.abc import Iterator

from ..parallel import end_if_lost, join


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that fit together: one for every GPU or host."""

    distributed: bool = False
    """Fit together with other processes that have the same arguments; --out is a folder that all
    of them share. SLURM, Kubernetes and other clusters are detected; elsewhere, pass the next
    three."""

    coordinator: str | None = None
    """The address of the first process, HOST:PORT, for all others."""

    num_processes: int | None = None
    """The number of processes."""

    process_id: int | None = None
    """The index of this process, from 0."""

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
