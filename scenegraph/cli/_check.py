import dataclasses
import importlib.util
import pathlib
import sys
from collections.abc import Callable
from typing import Annotated, Any, TYPE_CHECKING

import tyro
from rich.progress import Progress

from ..io import FileError
from ..settings import check_ranges, ranged
from ._console import show
from ._flags import OptionalStr
from ._progress import frames_bar


if TYPE_CHECKING:
    from ..cameras import AbstractCamera
    from ..scene import Scene


class WrongGradients(Exception):
    """Gradients that are wrong; the message names them."""


@dataclasses.dataclass(frozen=True)
class Check:
    """Compare the gradient of every leaf of a scene with finite differences, or, with `--fisher`,
    say how well pictures determine each leaf."""

    # A Python file and a function in it, as in SCENE.py:make, which returns a scene, or a scene
    # and a camera. The file is run.
    scene: Annotated[str, tyro.conf.Positional]

    # The path of a camera in the scene; by default the first, with --fisher all.
    camera: OptionalStr = None

    # The paths of the leaves to check; by default every leaf that is not frozen.
    where: tuple[str, ...] = ()

    # The number of pixels to render.
    pixels: int = ranged(256, 1, 2**31 - 1)

    # The largest relative error of a gradient that is called right.
    tolerance: float = ranged(1e-4, 0)

    # Print the standard error of every leaf after a fit to whole pictures, and what they leave
    # undetermined, instead of checking gradients.
    fisher: bool = False

    # The noise of every pixel and channel, as a standard deviation; for --fisher.
    sigma: float = ranged(0.01, 0, open=True)

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)

    def main(self) -> None:
        """Prints a table; a wrong gradient is an error."""
        from ..diagnostics import check_gradients, fisher, gradient_table
        from ..scene import camera_paths

        scene, camera = _scene_and_camera(_load(self.scene)(), self.scene)
        if self.fisher:
            one = self.camera or camera
            cameras = camera_paths(scene) if one is None else [one]
            cameras = cameras or [_first_camera(scene, self.scene)]
            leaves = self.where or None
            show(fisher(scene, cameras, trainable=leaves, sigma=self.sigma).table())
            return
        with frames_bar() as bar:
            checks = check_gradients(
                scene,
                self.camera or camera or _first_camera(scene, self.scene),
                where=self.where or None,
                pixels=self.pixels,
                tolerance=self.tolerance,
                progress=_Progress(bar).show,
            )
        show(gradient_table(checks))
        bad = [check.path for check in checks if check.verdict in ("wrong", "not finite")]
        if bad:
            raise WrongGradients(f"{len(bad)} of {len(checks)} gradients: {', '.join(bad)}")


class _Progress:
    """Shows the progress of the check on a bar."""

    def __init__(self, bar: Progress):
        self._bar, self._task = bar, bar.add_task("compiling", total=None)

    def show(self, done: int, count: int) -> None:
        name = "leaves" if done else "compiling"
        self._bar.update(self._task, description=name, completed=done, total=count)


def _load(place: str) -> Callable[[], Any]:
    file, _, name = place.rpartition(":")
    path = pathlib.Path(file)
    if not file or path.suffix != ".py":
        raise FileError(f"name a file and a function in it, as in SCENE.py:make; got {place!r}.")
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses and Modules look for themselves
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise FileError(f"{path} has no function {name!r}.")
    return function


def _scene_and_camera(made: Any, place: str) -> "tuple[Scene, AbstractCamera | None]":
    from ..cameras import AbstractCamera
    from ..scene import Scene

    scene, camera = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(scene, Scene) or not isinstance(camera, AbstractCamera | None):
        raise FileError(f"{place} must return a scene, or a scene and a camera; got {made!r}.")
    return scene, camera


def _first_camera(scene: "Scene", place: str) -> str:
    from ..scene import camera_paths

    paths = camera_paths(scene)
    if not paths:
        raise FileError(f"{place}: there is no camera in the scene; return one beside it.")
    return paths[0]
