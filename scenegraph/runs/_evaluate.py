"""Scores of rendered pictures: of one pair, of a set of views, of a run."""

import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array
from ..data import Views
from ..images import as_bytes, error_panels, Image, side_by_side, srgb_numbers
from ..io import check_kinds, FileError, import_extra, MissingExtra, read_json
from ..losses import correct_color, flip, load_lpips, psnr, ssim
from ..rendering import render
from ..scene import load_whole, Scene
from ..settings import held_out_split
from ._fingerprint import find_difference
from ._held_out import HeldOut, place_held_out
from ._report import report
from ._residuals import RESIDUALS
from ._run import Run, silent
from ._scores import describe_protocol, Scores, summary
from ._time_plan import TimePlan


# The sides of the smallest pictures that SSIM and LPIPS can compare.
_SSIM_SIDE, _LPIPS_SIDE = 11, 16


@dataclasses.dataclass(frozen=True)
class Measures:
    """Metrics beside PSNR and SSIM, `None` where left out, with the reasons."""

    flip: Callable[[Any, Any], float] | None = None
    lpips: Callable[[Any, Any], float] | None = None
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)


def find_measures(
    *, lpips: bool = True, lpips_weights: str | os.PathLike | None = None
) -> Measures:
    """Finds all metrics that can be computed with the packages that are installed.

    **Arguments:**

    - `lpips`: if false, LPIPS is left out. Keyword only argument.
    - `lpips_weights`: the file of its weights, as in `load_lpips`. Keyword only argument.

    **Returns:**

    The metrics; those that cannot be computed are named with the reason.

    **Errors:**

    If weights are named: `FileError` if they are missing or of another kind; `MissingExtra` if
    the packages for them are missing.
    """
    found, missing = {}, {}
    try:
        import_extra("flip_evaluator", "metrics", "FLIP")
        found["flip"] = flip
    except MissingExtra as error:
        missing["flip"] = str(error)
    if not lpips:
        missing["lpips"] = "LPIPS was not requested"
    try:
        found |= {"lpips": load_lpips(lpips_weights)} if lpips else {}
    except (MissingExtra, FileError) as error:
        if lpips_weights is not None:
            raise
        missing["lpips"] = str(error)
    if "lpips" in missing:
        missing["average"] = "the average error needs LPIPS"
    return Measures(**found, missing=missing)


def compare(name: str, image: Image, truth: Image, measures: Measures = Measures()) -> Scores:
    """Scores one picture.

    **Arguments:**

    - `name`: the name of the picture.
    - `image`: the rendered picture.
    - `truth`: the true picture, of the same size.
    - `measures`: the metrics beside PSNR and SSIM.

    **Returns:**

    The scores. SSIM is not a number for pictures under 11 pixels, nor LPIPS for those under 16.
    """
    rounded = [jnp.asarray(as_bytes(x) / np.float32(255)) for x in (image, truth)]
    numbers = [float(x) for x in (*_plain(image.rgb, truth.rgb), *_plain(*rounded))]
    exact = _perceptual(measures, srgb_numbers(image), srgb_numbers(truth))
    if truth.alpha is None:  # A photograph.
        exact["psnr_corrected"] = float(_corrected(image.rgb, truth.rgb))
    coarse = {f"{key}_8bit": value for key, value in _perceptual(measures, *rounded).items()}
    return Scores(name, *numbers, **exact, **coarse, size=(image.width, image.height))


@eqx.filter_jit
def _plain(image: Array, truth: Array) -> tuple[Array, Array]:
    large = min(image.shape[:2]) >= _SSIM_SIDE
    return psnr(image, truth), ssim(image, truth) if large else jnp.asarray(jnp.nan)


@eqx.filter_jit
def _corrected(image: Array, truth: Array) -> Array:
    return psnr(correct_color(image, truth), truth)


def _perceptual(measures: Measures, image: Array, truth: Array) -> dict[str, Any]:
    large = min(image.shape[:2]) >= _LPIPS_SIDE
    found: dict[str, Any] = {}
    if measures.flip is not None:
        found["flip"] = measures.flip(image, truth)
    if measures.lpips is not None:
        found["lpips"] = measures.lpips(image, truth) if large else float("nan")
    return found


def evaluate(
    scene: Scene,
    views: Views,
    *,
    frames: Iterable[int] | None = None,
    seen: Callable[[int, Image, Image], Any] | None = None,
    measures: Measures = Measures(),
) -> list[Scores]:
    """Renders pictures from their cameras, deterministically, and compares them with the truth.

    **Arguments:**

    - `scene`: the fitted scene.
    - `views`: the held-out pictures.
    - `frames`: the indices of the pictures to score; by default all. Keyword only argument.
    - `seen`: a function that is called with the index, the rendered picture and the truth. Keyword
      only argument.
    - `measures`: the metrics beside PSNR and SSIM; `find_measures` finds all that can be computed.
      Keyword only argument.

    **Returns:**

    The scores of every picture.
    """
    chosen = range(views.frames) if frames is None else list(frames)
    scored = dict(_evaluate_in_time(scene, views, chosen, seen, measures, TimePlan()))
    return [scored[frame] for frame in chosen]


def _evaluate_in_time(
    scene: Scene,
    views: Views,
    frames: Sequence[int],
    seen: Callable[[int, Image, Image], Any] | None,
    measures: Measures,
    plan: TimePlan,
) -> Iterator[tuple[int, Scores]]:
    """Scores as many pictures as there is time for, each while the next one is rendered."""
    before: Future[tuple[int, Scores]] | None = None
    with ThreadPoolExecutor(1, "scenegraph-scores") as pool:
        for count, frame in enumerate(spread(frames) if plan.limited else frames):
            rays = int(views.widths[frame]) * int(views.heights[frame])
            if count and not plan.allows(rays):
                break
            begin = time.monotonic()
            image, truth = render(scene, views.camera(frame)), views.image(frame)
            if before is not None:
                yield before.result()
            before = pool.submit(_judge, views, frame, image, truth, measures, seen)
            if jax.device_count() > 1:  # Two programs on many devices would wait for each other.
                before.result()
            if count:  # The first may have been compiled.
                plan.measure(rays, time.monotonic() - begin)
        if before is not None:
            yield before.result()


def _judge(
    views: Views,
    frame: int,
    image: Image,
    truth: Image,
    measures: Measures,
    seen: Callable[[int, Image, Image], Any] | None,
) -> tuple[int, Scores]:
    """Scores one picture, and shows it."""
    scores = _compare_seen(views, frame, image, truth, measures)
    if seen is not None:
        seen(frame, image, truth)
    return frame, scores


def _compare_seen(
    views: Views, frame: int, image: Image, truth: Image, measures: Measures
) -> Scores:
    """Scores one picture; pixels that its mask leaves out do not count."""
    name, weights = views.names[frame], views.weights
    counts = None if weights is None else np.asarray(weights[views.part(frame)]) > 0
    if counts is None or counts.all() or not counts.any():
        return compare(name, image, truth, measures)
    seen = jnp.asarray(counts.reshape(truth.height, truth.width, 1))
    truth = dataclasses.replace(truth, rgb=jnp.where(seen, truth.rgb, image.rgb))
    scores = compare(name, image, truth, measures)
    # The mean square over all pixels is that over the seen ones, times their share.
    share = 10 * np.log10(counts.mean())
    return dataclasses.replace(scores, psnr=scores.psnr + share, psnr_8bit=scores.psnr_8bit + share)


def spread(items: Sequence[int]) -> list[int]:
    """Orders items so that those in front are spread over all, however few are taken."""
    # Multiples of the golden ratio, modulo one, divide the circle evenly at every length.
    places = (np.arange(len(items)) * (np.sqrt(5) - 1) / 2) % 1
    taken = np.argsort(np.argsort(places))
    return [items[i] for i in taken]


def evaluate_run(
    run: Run,
    split: str | None = None,
    *,
    data: str | os.PathLike | None = None,
    other_data: bool = False,
    skip_missing: bool = False,
    scene: Scene | None = None,
    frames: list[int] | None = None,
    measures: Measures | None = None,
    say: Callable[[str], Any] = silent,
) -> dict[str, Any]:
    """Scores a run on held-out pictures; writes metrics, and pictures beside the truth.

    **Arguments:**

    - `run`: the run.
    - `split`: the name of the split; by default `test`, or else `val`, or else `train`.
    - `data`: the data folder; by default that of the fit. Keyword only, as is all that follows.
    - `other_data`: if true, `data` may hold other pictures than the fit's; what is written then
      goes into `other-data/NAME` in the run folder, with the name of the data folder.
    - `skip_missing`: if true, pictures whose files are missing or damaged are left out.
    - `scene`: the scene; by default the saved one.
    - `frames`: the indices of the pictures to score; by default all.
    - `measures`: the metrics beside PSNR and SSIM; with `None` there are no others, and no
      pictures of the errors either.
    - `say`: a function that is called with messages about the progress.

    **Returns:**

    The content of `metrics.json`.

    **Errors:**

    `FileError` for a folder with other pictures than those of the fit, unless `other_data`.
    """
    (config, _), folder = run.load_config(), run.find_data(data)
    split = split or held_out_split(folder)
    if skip_missing:
        config = dataclasses.replace(
            config, data=dataclasses.replace(config.data, skip_missing=True)
        )
    views = config.data.load(folder, split)
    for note in views.notes:
        say(note)
    out = _choose_folder(run, folder, split, views, other_data, config.data.skip_missing)
    if out != run:
        say(f"{folder} holds other data than the fit's: all is written into {out.folder}")
    scene = load_whole(run.folder) if scene is None else scene
    held_out = place_held_out(scene, HeldOut(folder, split, views, config.data), say)
    return score_views(out, scene, held_out, frames, measures, say=say)


def score_views(
    run: Run,
    scene: Scene,
    held_out: HeldOut,
    frames: Sequence[int] | None = None,
    measures: Measures | None = None,
    *,
    say: Callable[[str], Any] = silent,
    plan: TimePlan = TimePlan(),
) -> dict[str, Any]:
    """Scores pictures for as long as a plan has time, and writes all into a run folder."""
    folder, split, views, settings, cameras = held_out
    run.drop_pictures(split)
    chosen = range(views.frames) if frames is None else frames
    pace = Pace(len(chosen), say)

    def seen(frame: int, image: Image, truth: Image) -> None:
        run.save_picture(f"{split}_{frame:03d}", side_by_side([image, truth]))
        if measures is not None:
            run.save_picture(f"{split}_{frame:03d}_error", error_panels(image, truth))
        pace.tick()

    used = _PLAIN if measures is None else measures
    scored = dict(_evaluate_in_time(scene, views, chosen, seen, used, plan))
    if len(scored) < len(chosen):
        say(
            f"there was time to score {len(scored)} of {len(chosen)} pictures; "
            f"`scenegraph eval {run.folder}` scores all"
        )
    kinds = {"flip": used.flip is not None, "lpips": used.lpips is not None}
    protocol = describe_protocol(settings, views, split, len(scored), **kinds)
    protocol |= {} if cameras is None else {"cameras": cameras}
    scores = [scored[frame] for frame in sorted(scored)]
    metrics = summary(scores, {"data": str(folder), **protocol}, used.missing)
    metrics |= _known_residuals(run)
    run.save_metrics(metrics, report(metrics))
    say(f"wrote {run.metrics}, {run.report} and {run.pictures}")
    return metrics


def _known_residuals(run: Run) -> dict[str, Any]:
    """Returns what a fit has found of its training pictures, which no evaluation reads."""
    try:
        found = read_json(run.metrics)
        check_kinds(found, {"training?": RESIDUALS}, str(run.metrics))
    except FileError:
        return {}
    known = found.get("training") if isinstance(found, dict) else None
    return {"training": known} if isinstance(known, dict) else {}


def _choose_folder(
    run: Run,
    folder: pathlib.Path,
    split: str,
    views: Views,
    other_data: bool,
    skip_missing: bool,
) -> Run:
    """Returns the run itself for pictures of its own data, and a folder in it for others."""
    config, others = run.load_config()
    known = others.get("fingerprint")
    if not isinstance(known, dict) or not known:  # a run of an earlier version
        return run
    odd = None
    if split not in known:  # Then another split shows whether the data are the run's.
        split = "train" if "train" in known else next(iter(known))
        try:
            views = config.data.load(folder, split)
        except FileError:
            odd = "no pictures"
    odd = odd or find_difference(known[split], views)
    # Of pictures that are missing since, nothing shows whether they were those of the fit.
    fewer = skip_missing and views.frames < known[split].get("pictures", 0)
    if odd is None or fewer:
        return run
    if not other_data:
        raise FileError(
            f"{folder} does not hold the data that {run.folder} was fitted to (its {split} split "
            f"has {odd}). Pass --other-data to score the fit on it all the same; the run's own "
            "scores stay."
        )
    return Run(run.subfolder("other-data", folder.resolve().name))


_PLAIN = Measures(
    missing={
        name: f"{title} is measured by `scenegraph eval` alone"
        for name, title in [("flip", "FLIP"), ("lpips", "LPIPS"), ("average", "the average error")]
    }
)


@dataclasses.dataclass
class Pace:
    """Says every ten seconds how far a long task has come, and how long the rest will take."""

    total: int
    say: Callable[[str], Any]
    every: float = 10.0

    def __post_init__(self):
        self._done, self._first, self._said = 0, 0.0, time.monotonic()

    def tick(self) -> None:
        """Counts one more picture."""
        self._done += 1
        now = time.monotonic()
        if self._done == 1:  # Most of its time was compilation, which says nothing of the rest.
            self._first = now
        elif now - self._said >= self.every:
            self._said = now
            one = (now - self._first) / (self._done - 1)
            left = round(one * (self.total - self._done))
            self.say(f"picture {self._done}/{self.total}, {one:.1f} s each, {left} s left")
