"""The arguments of several processes, on one host or many, that fit one scene together."""

import contextlib
import dataclasses
from collections.abc import Iterator

from ..settings import check_ranges, ranged
from ._flags import OptionalInt, OptionalStr


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that fit together: one for every GPU or host."""

    # Fit together with other processes that have the same arguments; --out is a folder that all of
    # them share. SLURM, Kubernetes and other clusters are detected; elsewhere, pass the next three.
    distributed: bool = False

    # The address of the first process, HOST:PORT, for all others.
    coordinator: OptionalStr = None

    # The number of processes.
    num_processes: OptionalInt = ranged(None, 1, 2**31 - 1)

    # The index of this process, from 0.
    process_id: OptionalInt = ranged(None, 0, 2**31 - 1)

    def check(self) -> None:
        """Refuses what only several processes have."""
        check_ranges(self)
        given = self.coordinator, self.num_processes, self.process_id
        if not self.distributed and any(x is not None for x in given):
            raise ValueError("--coordinator, --num-processes and --process-id need --distributed.")

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Joins the other processes, and ends this one with a message if another is lost."""
        if not self.distributed:
            yield
            return
        from ..parallel import end_if_lost, join

        try:
            join(self.coordinator, self.num_processes, self.process_id)
        except ValueError as error:
            raise ValueError(
                f"--distributed found no cluster ({error}) Outside of SLURM, Kubernetes and the "
                "like, give --coordinator HOST:PORT, --num-processes and --process-id."
            ) from error
        with end_if_lost(
            "Start all of them again with --resume to go on from the last checkpoint."
        ):
            yield
