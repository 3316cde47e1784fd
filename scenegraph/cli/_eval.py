import dataclasses
import pathlib
from typing import Annotated

import tyro

from ._console import say, show
from ._flags import OptionalPath, OptionalStr


@dataclasses.dataclass(frozen=True)
class Eval:
    """Score a fitted scene on held-out pictures; write metrics and pictures into its run folder."""

    # The run folder.
    run: Annotated[pathlib.Path, tyro.conf.Positional]

    # The split: test (the default, if there is one), val, or train.
    split: OptionalStr = None

    # The data folder; by default the one that was fitted. Pass it where the data have moved.
    data: OptionalPath = None

    # Let --data hold other pictures than those of the fit; metrics and pictures are then written
    # into RUN/other-data/NAME.
    other_data: bool = False

    # Leave out pictures whose files are missing or damaged.
    skip_missing: bool = False

    # Measure LPIPS too, if its extra and its weights are installed; takes seconds a picture on a
    # CPU.
    lpips: bool = True

    # The file with torchvision's weights of VGG16, for LPIPS; by default the one named by
    # SCENEGRAPH_LPIPS_WEIGHTS, or the one that PyTorch has. Nothing is ever downloaded.
    lpips_weights: OptionalPath = None

    def main(self) -> None:
        """Evaluates, and prints means and standard deviations."""
        from ..runs import evaluate_run, find_measures, markdown, metric_table, open_run

        run = open_run(self.run)
        run.load_config()  # A folder that is no run is refused first.
        measures = find_measures(lpips=self.lpips, lpips_weights=self.lpips_weights)
        for reason in measures.missing.values():
            say(f"left out: {reason}")
        metrics = evaluate_run(
            run,
            self.split,
            data=self.data,
            other_data=self.other_data,
            skip_missing=self.skip_missing,
            measures=measures,
            say=say,
        )
        show(markdown(metric_table(metrics)))
