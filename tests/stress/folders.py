"""Small data folders, and what their files say, worked out with other means than the loaders."""

import json
import math
import pathlib

import jax.numpy as jnp
import numpy as np
from PIL import Image as PillowImage

import scenegraph as sg
from scenegraph.data import convert_multiscale, load_llff
from support.blender_folder import ball_picture, eyes, look_at, write_split
from support.llff_folder import facing_poses, write_llff


# A rotation may be off by a thousandth in a file, and is taken as it is or made one.
DIRECTIONS, PLACES = 5e-3, 1e-5


def pixels_of(file: pathlib.Path) -> np.ndarray:
    with PillowImage.open(file) as picture:
        has_alpha = "A" in picture.getbands() or "transparency" in picture.info
        return np.asarray(picture.convert("RGBA" if has_alpha else "RGB"))


def same_pixels(views: sg.Views, pictures: list[np.ndarray]) -> bool:
    flat = [picture.reshape(-1, picture.shape[-1]) for picture in pictures]
    return views.frames == len(flat) and np.array_equal(views.pixels, np.concatenate(flat))


def lines_of(views: sg.Views, frame: int, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a camera's rays begin, and where they go, as unit vectors."""
    camera = views.camera(frame)
    lines = [camera.line(jnp.asarray(pixel, jnp.float32)) for pixel in pixels]
    origins, ways = np.array(lines, np.float64).swapaxes(0, 1)
    return origins, unit(ways)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def same_rays(views: sg.Views, frame: int, pixels: np.ndarray, ways, place) -> bool:
    """Whether a camera's rays begin at a place, and go where they should."""
    origins, found = lines_of(views, frame, pixels)
    turned = np.abs(found - unit(ways)).max()
    return bool(turned <= DIRECTIONS) and np.allclose(origins, place, PLACES)


# --- Blender


def write_blender(folder: pathlib.Path) -> pathlib.Path:
    poses = [look_at(place) for place in eyes(2)]
    return write_split(folder, "train", [ball_picture(pose, 6) for pose in poses], poses)


def blender_is_right(views: sg.Views, listing: pathlib.Path) -> bool:
    document = json.loads(listing.read_text(encoding="utf-8"))
    matrices = [frame["transform_matrix"] for frame in document["frames"]]
    poses = [np.array(matrix, np.float64).reshape(-1, 4) for matrix in matrices]
    files = [listing.parent / frame["file_path"] for frame in document["frames"]]
    named = [
        file if file.suffix == ".png" else file.with_name(f"{file.name}.png") for file in files
    ]
    pictures = [pixels_of(file) for file in named]
    height, width = pictures[0].shape[:2]
    corners = np.array([[0.0, 0.0], [width / 2, height / 2]])
    focal = 0.5 * width / math.tan(document["camera_angle_x"] / 2)
    ways = np.array([[-0.5 * width, 0.5 * height, -focal], [0, 0, -focal]])
    return same_pixels(views, pictures) and all(
        same_rays(views, frame, corners, ways @ pose[:3, :3].T, pose[:3, 3])
        for frame, pose in enumerate(poses)
    )


# --- Multiscale


def write_multiscale(folder: pathlib.Path) -> pathlib.Path:
    write_blender(folder / "blender")
    convert_multiscale(folder / "blender", folder / "data", 2)
    return folder / "data" / "metadata.json"


def multiscale_is_right(views: sg.Views, listing: pathlib.Path) -> bool:
    columns = json.loads(listing.read_text(encoding="utf-8"))["train"]
    files = [listing.parent / name for name in columns["file_path"]]
    pictures = [pixels_of(file) for file in files]
    corners = np.array([[0.0, 0.0], [1.0, 2.0]])
    ahead = np.concatenate([corners, np.ones((2, 1))], axis=1)
    for frame, (pose, lens) in enumerate(
        zip(columns["cam2world"], columns["pix2cam"], strict=True)
    ):
        pose, lens = np.array(pose, np.float64).reshape(-1, 4), np.array(lens, np.float64)
        ways = ahead @ lens.T @ pose[:3, :3].T
        if not same_rays(views, frame, corners, ways, pose[:3, 3]):
            return False
        camera = views.camera(frame)
        said = [columns[name][frame] for name in ("near", "far", "width", "height")]
        if not np.allclose([camera.near, camera.far, camera.width, camera.height], said, 1e-6):
            return False
    weights = np.allclose(views.lossmult, columns["lossmult"], 1e-6)
    return same_pixels(views, pictures) and weights


# --- LLFF


def write_facing(folder: pathlib.Path) -> pathlib.Path:
    poses = facing_poses(4)
    pictures = np.random.default_rng(0).integers(0, 256, (4, 4, 6, 3), dtype=np.uint8)
    return write_llff(folder, poses, pictures) / "poses_bounds.npy"


def load_facing(folder: pathlib.Path, split: str) -> sg.Views:
    """With their rays as they are; bent ones have to be possible too."""
    load_llff(folder, split)
    return load_llff(folder, split, ndc=False)


def facing_is_right(views: sg.Views, listing: pathlib.Path) -> bool:
    """Rays as the table has them, but for one rigid motion and one scale of the whole."""
    table = np.load(listing).astype(np.float64)
    files = sorted((listing.parent / "images").iterdir())[1:]
    pictures = [pixels_of(file) for file in files]
    columns, scale = table[1:, :15].reshape(-1, 3, 5), 4 / 3 / table[:, 15:].min()
    corners = np.array([[0.0, 0.0], [1.0, 2.0]])
    height, width, focal = columns[0, :, 4]
    ahead = np.stack([corners[:, 0] - width / 2, height / 2 - corners[:, 1], [-focal] * 2], axis=1)
    turns = np.stack([columns[..., 1], -columns[..., 0], columns[..., 2]], axis=-1)
    ways = unit(np.einsum("nij,pj->npi", turns, ahead)).reshape(-1, 3)
    found = [lines_of(views, frame, corners) for frame in range(views.frames)]
    turn = _best_rotation(ways, np.concatenate([line[1] for line in found]))
    places = scale * (columns[..., 3] - columns[0, :, 3]) @ turn
    mine = np.stack([line[0][0] for line in found])
    apart = np.abs(mine - mine[0] - places).max() / max(1.0, np.abs(places).max())
    turned = np.abs(np.concatenate([line[1] for line in found]) - ways @ turn).max()
    limits = [views.camera(0).near, views.camera(0).far]
    expected = [0.9 * scale * table[:, 15:].min(), 1.1 * scale * table[:, 15:].max()]
    close = np.allclose(limits, expected, 1e-5)
    return same_pixels(views, pictures) and max(apart, turned) <= DIRECTIONS and close


def _best_rotation(points: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """The rotation that brings rows nearest to others, from the right (Kabsch)."""
    left, _, right = np.linalg.svd(points.T @ turned)
    return left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right
