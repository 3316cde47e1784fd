import concurrent.futures
import math
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ..cameras import PerspectiveCamera
from ..images import Image, srgb_numbers
from ..integrators import Hierarchical
from ..io import replace_file, write_json, write_picture
from ..rendering import render
from ..scene import find_contents, Scene
from ._table_top import table_top


_FOV_X = 0.7
# The data set of `table_top()`, as tests/support/pack_table_top.py renders it, and its views.
_PACKED = pathlib.Path(__file__).with_name("table_top.zip")
_COUNTS = {"train": 100, "val": 10, "test": 20}
# Fields of pictures that can be written beside the colours.
_OUTPUTS = ("depth", "normal")


def make_dataset(
    folder: str | os.PathLike,
    *,
    scene: Scene | None = None,
    size: int = 128,
    train: int = 100,
    val: int = 10,
    test: int = 20,
    distance: float = 4.0,
    seed: int = 0,
    outputs: Sequence[str] = (),
    progress: Callable[[int, int], object] = lambda done, count: None,
) -> pathlib.Path:
    """Makes a data set in Blender's format by rendering a scene from all sides above it.

    The pictures are RGBA with the true coverage of every pixel, without the scene's background.
    Colours are straight, not multiplied by the opacity, and sRGB-encoded. Those of the defaults
    are not rendered anew: the library brings them along, rendered by this function.

    **Arguments:**

    - `folder`: the folder to make. Files that are there are overwritten.
    - `scene`: the scene; by default `table_top()`. This and the following are keyword only
      arguments.
    - `size`: height and width of the pictures, in pixels.
    - `train`, `val`, `test`: number of views of each split.
    - `distance`: the distance of the cameras from the origin, in world units.
    - `seed`: the seed of the cameras' positions.
    - `outputs`: the names of what is written beside the colours, as numpy arrays of float32:
      `"depth"` makes `r_0_depth.npy` and so on, of shape `height width`, the mean distance along
      the camera's axis; `"normal"` makes `r_0_normal.npy`, `height width 3`, the mean normal in the
      world.
    - `progress`: a function that is called with the number of views done and of all views; for the
      first time before anything is compiled.

    **Returns:**

    The folder, with `transforms_{split}.json` and pictures.

    **Errors:**

    `ValueError` for a size or distance that is not positive, negative numbers of views, or an
    unknown output.
    """
    folder, counts = pathlib.Path(folder), {"train": train, "val": val, "test": test}
    _check(size, counts, distance, outputs)
    settings = size, counts, distance, seed, *outputs
    if scene is None and settings == (128, _COUNTS, 4.0, 0):
        return _unpack(folder, sum(counts.values()), progress)
    generator = np.random.default_rng(seed)
    cameras = {
        split: [_random_camera(generator, size, distance) for _ in range(count)]
        for split, count in counts.items()
    }
    views = {f"./{split}/r_{i}": x for split, own in cameras.items() for i, x in enumerate(own)}
    for split in counts:
        (folder / split).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(1) as writer:
        made = table_top() if scene is None else scene
        images = _rendered(made, list(views.values()), outputs, progress)
        pairs = zip(views, images, strict=True)
        jobs = [writer.submit(_write_view, folder / name, image, outputs) for name, image in pairs]
        for job in jobs:
            job.result()
    for split, own in cameras.items():
        _write_listing(folder, split, own)
    return folder


def _unpack(
    folder: pathlib.Path, count: int, progress: Callable[[int, int], object]
) -> pathlib.Path:
    """Copies the data set that the library brings along."""
    with zipfile.ZipFile(_PACKED) as packed:
        for path in map(folder.joinpath, packed.namelist()):
            if path.is_symlink():  # Nothing is written through a link.
                path.unlink()
        packed.extractall(folder)
    progress(count, count)
    return folder


def _check(size: int, counts: dict[str, int], distance: float, outputs: Sequence[str]) -> None:
    if size < 1:
        raise ValueError(f"`size` must be at least 1 pixel; got {size}.")
    if not 0 < distance < math.inf:
        raise ValueError(f"`distance` must be positive; got {distance}.")
    for split, count in counts.items():
        if count < 0:
            raise ValueError(f"`{split}`, a number of views, must not be negative; got {count}.")
    if unknown := [name for name in outputs if name not in _OUTPUTS]:
        raise ValueError(f"there is no output {unknown[0]!r}; there are {', '.join(_OUTPUTS)}.")


def _random_camera(generator: np.random.Generator, size: int, distance: float) -> PerspectiveCamera:
    azimuth = generator.uniform(0, 2 * math.pi)
    # Even in height is even over the sphere (Archimedes).
    height = generator.uniform(0.05, 0.95)
    level = math.sqrt(1 - height**2)
    eye = [
        distance * level * math.cos(azimuth),
        distance * level * math.sin(azimuth),
        distance * height,
    ]
    near, far = 0.4 * distance, 1.6 * distance
    target, up = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    return PerspectiveCamera.look_at(eye, target, up, _FOV_X, size, size, near=near, far=far)


def _rendered(
    scene: Scene,
    cameras: list[PerspectiveCamera],
    outputs: Sequence[str],
    progress: Callable[[int, int], object],
) -> Iterator[Image]:
    """Renders the views one by one, over black: colours are then those of the scene alone."""
    integrator = Hierarchical(samples=(64, 128)) if find_contents(scene).volumes else None
    bare = Scene(scene.root, background=[0.0, 0.0, 0.0], integrator=scene.integrator)
    progress(0, len(cameras))
    for done, camera in enumerate(cameras, start=1):
        image = render(bare, camera, integrator, outputs=tuple(set(outputs) & {"normal"}))
        yield image
        progress(done, len(cameras))


def _write_view(path: pathlib.Path, image: Image, outputs: Sequence[str]) -> None:
    write_picture(path.with_suffix(".png"), straight_rgba(image))
    for name in outputs:
        values = np.asarray(getattr(image, name), np.float32)
        replace_file(path.with_name(f"{path.name}_{name}.npy"), partial(np.save, arr=values))


def _write_listing(folder: pathlib.Path, split: str, cameras: list[PerspectiveCamera]) -> None:
    frames = [_frame(f"./{split}/r_{i}", camera) for i, camera in enumerate(cameras)]
    if frames:
        about = {"camera_angle_x": _FOV_X, "frames": frames}
        write_json(folder / f"transforms_{split}.json", about)


def _frame(name: str, camera: PerspectiveCamera) -> dict:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = camera.pose.linear(), camera.pose.offset()
    return {"file_path": name, "transform_matrix": matrix.tolist()}


def straight_rgba(image: Image) -> np.ndarray:
    """Converts a picture over black to sRGB bytes `height width 4` with straight colours."""
    alpha = np.ones(image.rgb.shape[:2]) if image.alpha is None else np.asarray(image.alpha)
    # Over black, rgb = alpha * straight, in the scene's own numbers; only then it is encoded.
    straight = np.asarray(image.rgb) / np.maximum(alpha, 1e-6)[..., None]
    encoded = np.asarray(srgb_numbers(Image(straight, space=image.space)))
    rgba = np.concatenate([encoded, alpha[..., None]], axis=-1)
    return np.round(255 * np.clip(rgba, 0, 1)).astype(np.uint8)
