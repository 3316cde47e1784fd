"""The benchmarks: `nox -s bench -- NAME [--options]`; figures are printed and written as JSON."""

import pathlib
import sys


sys.path.insert(0, str(pathlib.Path(__file__).parent))

import ablation  # noqa: E402
import ball  # noqa: E402
import basin  # noqa: E402
import calibration  # noqa: E402
import checkpoints  # noqa: E402
import fast  # noqa: E402
import first_minute  # noqa: E402
import first_use  # noqa: E402
import full_size  # noqa: E402
import in_a_row  # noqa: E402
import instances  # noqa: E402
import light  # noqa: E402
import loading  # noqa: E402
import many  # noqa: E402
import many_plot  # noqa: E402
import memory  # noqa: E402
import meshes  # noqa: E402
import mipnerf_step  # noqa: E402
import path  # noqa: E402
import photos  # noqa: E402
import surfaces  # noqa: E402
import tyro  # noqa: E402


COMMANDS = {
    "ablation": ablation.main,
    "ball": ball.main,
    "basin": basin.main,
    "calibration": calibration.main,
    "checkpoints": checkpoints.main,
    "fast": fast.main,
    "fast-again": fast.again,
    "first-minute": first_minute.main,
    "first-use": first_use.main,
    "full-size": full_size.main,
    "in-a-row": in_a_row.main,
    "instances": instances.main,
    "light": light.main,
    "loading": loading.main,
    "many": many.main,
    "many-plot": many_plot.main,
    "memory": memory.main,
    "meshes": meshes.main,
    "mipnerf": mipnerf_step.main,
    "path": path.main,
    "photos": photos.main,
    "surfaces": surfaces.main,
}


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict(COMMANDS)
