import dataclasses
import pathlib
from typing import Annotated, TYPE_CHECKING

import tyro

from ..io import import_extra
from ..settings import check_ranges, FitConfig, MethodName, preset, ranged
from ._cluster import Cluster
from ._console import say
from ._flags import OptionalFloat, OptionalInt, OptionalPath, OptionalStr
from ._poses import PhotographOptions
from ._progress import show_phase, track_frames
from ._time import process_age, seconds_of
from ._watchdog import Watchdog


if TYPE_CHECKING:
    from ..runs import FitOptions, Run


@dataclasses.dataclass(frozen=True)
class Fit:
    """Fit a radiance field to a folder of pictures, or to those that come with the library."""

    # The data folder, with transforms_train.json (Blender), metadata.json (multiscale),
    # poses_bounds.npy (LLFF), transforms.json (nerfstudio, instant-ngp) or sparse/0 (COLMAP); or
    # photographs without any of these, or a video, whose poses are found first; without it, the
    # table-top that comes with the library.
    data: Annotated[OptionalPath, tyro.conf.Positional, tyro.conf.arg(metavar="[DATA]")] = None

    # The run folder; by default the next free runs/NNN.
    out: OptionalPath = None

    # The named settings to start from: fast (a grid; a minute on a CPU), fast-gpu (a larger grid),
    # tiny (a small network), mipnerf (the paper's) or others; scenegraph presets lists all.
    preset: str = "fast"

    # The method: mlp (MipNerf, a network over sines) or grid (Grid, features on a grid). One that
    # is not the preset's begins with its own defaults.
    field: MethodName = "grid"

    # The time limit, such as 90s, 5m or 2h, counted from the start of the process; it includes the
    # pictures at the end.
    max_time: OptionalStr = None

    # The PSNR, in dB, at which the fit ends; of a few held-out pictures, every --eval-every steps.
    target_psnr: OptionalFloat = ranged(None)

    # Write curves and held-out pictures for TensorBoard, into RUN/tensorboard; needs the extra
    # tensorboard.
    tensorboard: bool = False

    # Go on with the fit in --out from its newest whole checkpoint, to the same numbers as if it
    # had never stopped; or begin, where none is saved yet. If the pictures have moved, name their
    # folder.
    resume: bool = False

    # Record a few steps for a profiler, after compilation, into RUN/profile.
    profile: bool = False

    # No effect; accepted so that commands for earlier versions still run.
    rounds: OptionalInt = None

    photographs: Annotated[PhotographOptions, tyro.conf.arg(name="")] = PhotographOptions()

    cluster: Annotated[Cluster, tyro.conf.arg(name="")] = Cluster()

    config: tyro.conf.OmitArgPrefixes[Annotated[FitConfig, tyro.conf.arg(name="")]] = (
        dataclasses.field(default_factory=lambda: preset("fast"))
    )

    # True if the command line has --downscale.
    downscale_given: Annotated[bool, tyro.conf.Suppress] = False

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)
        self.photographs.check()
        if self.max_time is not None:
            seconds_of(self.max_time)
        if self.cluster.distributed and self.out is None:
            raise ValueError("--distributed needs --out, a folder that all processes see.")
        self.cluster.check()

    def main(self) -> None:
        """Fits, and leaves a run folder."""
        from ..fitting import check_address_space
        from ..parallel import first_then_others, own_folder
        from ..runs import fit_run, next_free_run, open_run

        check_address_space()
        if self.rounds is not None:
            say("--rounds has no effect: rays are marched in one round")
        limit = None if self.max_time is None else seconds_of(self.max_time)
        if self.tensorboard:
            import_extra("tensorboardX", "tensorboard", "--tensorboard")
        with self.cluster.joined():
            shared = next_free_run() if self.out is None else open_run(self.out)
            folder = first_then_others(lambda: self._check_folders(shared, limit))
            options = self._options(limit)
            alone = None if self.cluster.distributed else limit
            watchdog = Watchdog(alone, process_age(), options.milestones)
            with own_folder(shared.folder, "*.sg") as own, watchdog.watching():
                fit_run(open_run(own), self._config_of(folder), folder, options)

    def _options(self, limit: float | None) -> "FitOptions":
        from ..parallel import from_first, is_first, largest
        from ..runs import FitOptions, Processes
        from ._steps import show_steps

        return FitOptions(
            preset=self.preset,
            resume=self.resume,
            limit=limit,
            elapsed=process_age(),
            target_psnr=self.target_psnr,
            tensorboard=self.tensorboard,
            profile=self.profile,
            processes=Processes(is_first(), from_first, largest),
            say=say,
            phase=show_phase,
            steps=show_steps,
            track=track_frames(),
        )

    def _check_folders(self, run: "Run", limit: float | None) -> pathlib.Path:
        """Makes sure that the run folder can be used, and returns the data folder."""
        from ..data import needs_poses
        from ..diagnostics import make_dataset
        from ..parallel import is_first

        if is_first():
            run.check(resume=self.resume)
        if self.data is not None:
            poses = needs_poses(self.data)
            return self._find_poses(self.data, run, limit) if poses else self.data.resolve()
        folder = run.subfolder("data").resolve()
        if not (folder / "transforms_test.json").exists():
            say(
                "no data folder given: fitting the table-top that comes with the library (100 "
                "pictures of 128 x 128)"
            )
            with run.locked():
                make_dataset(folder)
        return folder

    def _find_poses(self, photos: pathlib.Path, run: "Run", limit: float | None) -> pathlib.Path:
        """Finds the poses of photographs or of a video, and returns the capture in the run."""
        from ..photographs import estimate_seconds, require_engine

        require_engine()
        options = self.photographs
        seconds = estimate_seconds(photos, options.size, options.frames)
        say(f"{photos} has no poses: finding them, about {seconds:.0f} s")
        if limit is not None and process_age() + seconds > limit:
            raise ValueError(
                f"--max-time {self.max_time} is too short: finding the poses alone takes about "
                f"{seconds:.0f} s. Pass a longer one, or find the poses first (`scenegraph poses`)."
            )
        return options.find(photos, run.subfolder("capture")).folder.resolve()

    def _config_of(self, folder: pathlib.Path) -> FitConfig:
        """Returns the settings; the pictures of a capture are averaged to a size that fits soon."""
        from ..photographs import longest_side

        longest = longest_side(folder)
        factor = 1 if longest is None else max(1, round(longest / self.photographs.size))
        if self.downscale_given or self.config.data.downscale != 1 or factor == 1:
            return self.config
        say(
            f"the pictures are averaged over {factor} x {factor} pixels (--downscale 1 fits them "
            "as they are)"
        )
        return self.config.replace(downscale=factor)
