import math
import os
import pathlib

import jax.numpy as jnp
import numpy as np

from ..cameras import AbstractCamera, PerspectiveCamera
from ..images import Image
from ..integrators import Hierarchical
from ..io import write_json, write_picture
from ..rendering import render
from ..scene import Scene
from ._scenes import toy_scene


_FOV_X = 0.7


def make_dataset(
    folder: str | os.PathLike,
    *,
    scene: Scene | None = None,
    size: int = 64,
    train: int = 40,
    val: int = 4,
    test: int = 10,
    distance: float = 4.0,
    seed: int = 0,
) -> pathlib.Path:
    """Makes a data set in Blender's format by rendering a scene from all sides above it.

    **Arguments:**

    - `folder`: the folder to make.
    - `scene`: the scene; by default `toy_scene()`. This and the following are keyword only
      arguments.
    - `size`: height and width of the pictures, in pixels.
    - `train`, `val`, `test`: number of views of each split.
    - `distance`: the distance of the cameras from the origin, in world units.
    - `seed`: the seed of the cameras' positions.

    **Returns:**

    The folder, with `transforms_{split}.json` and RGBA pictures.
    """
    folder = pathlib.Path(folder)
    scene = toy_scene() if scene is None else scene
    generator = np.random.default_rng(seed)
    for split, count in {"train": train, "val": val, "test": test}.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        cameras = [_random_camera(generator, size, distance) for _ in range(count)]
        frames = [
            _write_view(folder, f"./{split}/r_{index}", scene, camera)
            for index, camera in enumerate(cameras)
        ]
        write_json(
            folder / f"transforms_{split}.json", {"camera_angle_x": _FOV_X, "frames": frames}
        )
    return folder


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


def _write_view(folder: pathlib.Path, name: str, scene: Scene, camera: PerspectiveCamera) -> dict:
    image = render(scene, camera, Hierarchical(samples=(64, 128)))
    write_picture((folder / name).with_suffix(".png"), straight_rgba(image, scene, camera))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = camera.pose.linear(), camera.pose.offset()
    return {"file_path": name, "transform_matrix": matrix.tolist()}


def straight_rgba(image: Image, scene: Scene, camera: AbstractCamera) -> np.ndarray:
    """Converts a picture in front of an even background to bytes `height width 4`."""
    middle = jnp.asarray([camera.width / 2, camera.height / 2])
    behind = np.asarray(scene.background(camera.ray(middle)))
    alpha = np.ones(image.rgb.shape[:2]) if image.alpha is None else np.asarray(image.alpha)
    # rgb = alpha * straight + (1 - alpha) * background
    front = np.asarray(image.rgb) - (1 - alpha[..., None]) * behind
    rgb = front / np.maximum(alpha[..., None], 1e-6)
    rgba = np.concatenate([rgb, alpha[..., None]], axis=-1)
    return np.round(255 * np.clip(rgba, 0, 1)).astype(np.uint8)
