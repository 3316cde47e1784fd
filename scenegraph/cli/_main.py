import dataclasses
import os
import sys
from typing import Annotated, Any, TYPE_CHECKING

import tyro

from .._first_use import load_everything
from ..io import FileError
from ..settings import field_name, METHODS, preset
from ._check import Check
from ._console import close_output, complain, explain, open_missing_streams
from ._convert import Convert
from ._data import Data
from ._eval import Eval
from ._export import Export
from ._fit import Fit
from ._flags import as_flags, refuse_others, with_values
from ._poses import Poses
from ._presets import Inspect, Presets
from ._render import Render
from ._table import Table


if TYPE_CHECKING:
    from ..runs import Run


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line: `scenegraph fit`, `eval`, `table`, `render`, `export`, ...

    **Arguments:**

    - `arguments`: the arguments without the program's name; by default those of the process.

    **Returns:**

    The exit code: 0; 1 for wrong gradients; 2, with a message, for an error that the user can
    correct; 3 for a fit that its --max-time has ended before step 20; 75 if another process of the
    same fit was lost; 129, 130 or 143 if SIGHUP, Ctrl-C or SIGTERM stopped the process, after
    saving; 141 if nobody reads what is printed.
    """
    is_own_process = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    open_missing_streams()
    try:
        command = _parse(arguments or ["--help"])
        if isinstance(command, _CHECKED):
            command.check()
    except BrokenPipeError:  # as of `| head`: the exit code of a process that SIGPIPE ends
        close_output()
        return 141
    except (FileError, ValueError, OSError) as error:
        complain(f"scenegraph: {explain(error)}")
        return 2
    except KeyboardInterrupt:
        complain("scenegraph: interrupted")
        return 130
    # Only now is JAX imported: help and wrong arguments take no time. Of every program that is read
    # from the cache of compiled ones, XLA would say in a page what else the machine may have.
    if is_own_process:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    load_everything()
    from ._run_command import run_command

    return run_command(command)


_CHECKED = Fit, Poses, Table, Render, Export, Convert, Data, Check
_Other = Poses | Eval | Table | Render | Export | Convert | Data | Presets | Inspect | Check


def _parse(arguments: list[str]) -> Fit | _Other:
    """Reads the command and its flags."""
    start = _start(arguments) if arguments[0] == "fit" else Fit()
    arguments = with_values(arguments) if arguments[0] == "fit" else arguments
    config = start.config
    _, flags = as_flags(config)
    fit_command = tyro.conf.subcommand("fit", default=dataclasses.replace(start, config=flags))
    command = tyro.cli(
        Annotated[Fit, fit_command] | _Other,
        prog="scenegraph",
        description="Differentiable scenes and radiance fields.",
        args=arguments,
    )
    if isinstance(command, Fit):
        given = _option(arguments, "--downscale") is not None
        config = config.replace(**command.config.flat())
        return dataclasses.replace(command, config=config, downscale_given=given)
    return command


def _start(arguments: list[str]) -> Fit:
    """Returns `fit` with the defaults of the named preset, or of the run to be resumed."""
    name, out = _option(arguments, "--preset") or "fast", _option(arguments, "--out")
    config, data = preset(name), None
    if "--resume" in arguments:
        run = _run_to_resume(out)
        if run.begun:
            config, others = run.load_config()
            name, data = _preset_of(run, others, arguments), run.data_folder()
    field = _option(arguments, "--field")
    method = next((kind for key, kind in METHODS.items() if key == field), type(config.method))
    if not isinstance(config.method, method):
        config = config.replace(method=method())
    refuse_others(arguments, config, name)
    return Fit(preset=name, field=field_name(config.method), config=config, data=data)


def _run_to_resume(out: str | None) -> "Run":
    """Returns the run to go on with, which may not have begun yet."""
    if out is None:
        raise ValueError("--resume needs --out, the folder of the run to go on with.")
    from ..runs import open_run

    run = open_run(out)
    if run.checkpoints().paths():
        run.load_config()  # Checkpoints without settings are refused.
    return run


def _preset_of(run: "Run", others: dict[str, Any], arguments: list[str]) -> str:
    """Returns the name of the preset with which a run began; refuses another."""
    given = _option(arguments, "--preset")
    name = others.get("preset") or given or "fast"
    if given not in (None, name):
        raise ValueError(
            f"{run.folder} was begun with --preset {name}, and --preset {given} cannot go on with "
            "it; leave --preset out, or pass another --out."
        )
    return name


def _option(arguments: list[str], name: str) -> str | None:
    for index, argument in enumerate(arguments):
        if argument == name and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(name + "="):
            return argument.split("=", 1)[1]
    return None
