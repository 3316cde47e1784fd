"""The LLFF format: `poses_bounds.npy` and folders of pictures, of forward-facing scenes mostly."""

import math
import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Matrix4
from ..cameras import (
    AbstractCamera,
    llff_spiral,
    NDCCamera,
    PerspectiveCamera,
    recentre_poses,
    spherified_circle,
    spherify_poses,
)
from ..io import are_usable, as_pose, FileError, LARGEST, read_array
from ..pixels import Views
from ..transforms import Pose
from ._listing import is_picture, picture_path
from ._loading import Loading, LoadOptions
from ._masks import find_masks
from ._pictures import assemble_views, gather_pictures, PictureFile
from ._splits import choose_frames


LLFF_LISTING = "poses_bounds.npy"
LLFF_SPLITS = ("train", "test")
# NDC is for cameras all of whose rays are this close to the average camera's axis: 70 degrees, at
# which a unit of NDC shows three of the world. Cameras whose axes' mean is shorter have no average.
_FORWARD, _SHORTEST = math.cos(math.radians(70)), 0.1


class _Scene(NamedTuple):
    """All cameras of a folder: in the world that they are loaded into, with full-size pictures.

    `facing` is the least cosine between the ray of a pixel and the axis of the average camera; -1
    for cameras that have no average, because they look in all directions.
    """

    poses: np.ndarray
    bounds: np.ndarray
    height: float
    width: float
    focal: float
    facing: float

    def uses_ndc(self, path: pathlib.Path, ndc: bool | None, spherify: bool) -> bool:
        """Returns true for NDC: if it is asked for, or if nobody says, where it can be."""
        if spherify or ndc is False:
            return False
        if ndc is None:
            return self.facing > _FORWARD
        if self.facing <= -1:
            raise FileError(
                f"{path}: its cameras look in all directions, of which there is no NDC; leave out "
                "--ndc (`ndc=True`)."
            )
        return True


class _Optics(NamedTuple):
    """The intrinsics that all cameras share."""

    width: int
    height: int
    focal: float
    near: float
    far: float
    ndc: bool
    published: bool


def load_llff(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    hold_every: int = 8,
    held_out: Sequence[str | int] = (),
    ndc: bool | None = None,
    spherify: bool = False,
    published_radii: bool = False,
    **options: Unpack[LoadOptions],
) -> Views:
    """Loads one split of an LLFF data set.

    The world is moved so that the average camera is its origin, and scaled so that the nearest
    depth is 4/3. The option `downscale` is by how much pictures are smaller than
    `poses_bounds.npy` says; `near` and `far` are by default 0 and 1 in NDC, else the bounds of the
    file with some margin.

    **Arguments:**

    - `folder`: the folder of `poses_bounds.npy` and `images_{downscale}`, or of `images`, which are
      then averaged over blocks.
    - `split`: `test` is every eighth picture, beginning with the first; `train` is the others.
    - `hold_every`: another number than eight. Keyword only, as is all that follows.
    - `held_out`: the pictures of `test` instead, by names or by numbers in their order.
    - `ndc`: if true, space is bent so that all in front of the cameras fits into a cube
      (`NDCCamera`); by default where the rays of all pixels leave forward, within 70 degrees of the
      average camera's axis.
    - `spherify`: if true, the world is scaled to the unit sphere instead of bent: for cameras that
      look inwards from all around.
    - `published_radii`: if true, rays in NDC have the radii and views of the published code, as in
      `NDCCamera`.
    - `options`: the keywords of `LoadOptions`.

    **Returns:**

    The pictures with their cameras.

    **Errors:**

    `FileError` for anything missing or malformed; the message names the file. `ValueError` for
    `hold_every` below two.

    **Source:** the class `LLFF` of the published mip-NeRF code.
    """
    folder, loading = pathlib.Path(folder), Loading(**options)
    scene = _read_scene(folder / LLFF_LISTING, spherify)
    bent = scene.uses_ndc(folder / LLFF_LISTING, ndc, spherify)
    every, factor, odd = _find_pictures(folder, loading, len(scene.poses))
    names = [one.file.name for one in every]
    if split not in LLFF_SPLITS:
        raise FileError(f"{folder} has no split {split!r}; LLFF data have train and test.")
    listing = folder / LLFF_LISTING
    chosen = np.asarray(choose_frames(listing, names, split, hold_every, held_out))
    smaller = loading.downscale / factor
    expected = scene.width / smaller, scene.height / smaller
    wanted = [every[index]._replace(expected=expected) for index in chosen]
    pictures = gather_pictures(wanted, loading, factor, listed=[one.file for one in every])
    if ndc is None and not bent and not spherify:
        odd = (f"{listing}: its cameras do not all look forward: no NDC (--ndc for it)", *odd)
    pictures, chosen = pictures._replace(notes=(*odd, *pictures.notes)), chosen[pictures.kept]
    sizes = pictures.sizes // factor
    width, height = map(int, sizes[0])
    _check_size(folder, every[chosen[0]].file, width, height, scene, loading.downscale)
    optics = _optics(scene, (width, height), loading, bent, published_radii)
    cameras = jax.jit(jax.vmap(lambda pose: _make_camera(pose, optics)))(scene.poses[chosen])
    return assemble_views(loading, pictures, cameras, sizes, [names[index] for index in chosen])


def llff_path(
    folder: str | os.PathLike,
    frames: int = 120,
    *,
    downscale: int = 1,
    near: float | None = None,
    far: float | None = None,
    ndc: bool | None = None,
    spherify: bool = False,
    published_radii: bool = False,
) -> list[AbstractCamera]:
    """Makes the cameras of the film that goes with an LLFF data set."""
    path = pathlib.Path(folder) / LLFF_LISTING
    scene = _read_scene(path, spherify)
    bent = scene.uses_ndc(path, ndc, spherify)
    if spherify:
        poses = spherified_circle(scene.poses, frames, closed=published_radii)
    else:
        poses = llff_spiral(scene.poses, scene.bounds, frames)
    width, height = (max(1, round(size / downscale)) for size in (scene.width, scene.height))
    loading = Loading(downscale, near, far)
    optics = _optics(scene, (width, height), loading, bent, published_radii)
    return [_make_camera(jnp.asarray(pose, jnp.float32), optics) for pose in poses]


def _optics(
    scene: _Scene, size: tuple[int, int], loading: Loading, ndc: bool, published: bool
) -> _Optics:
    lowest, highest = (0.0, 1.0) if ndc else (0.9 * scene.bounds.min(), 1.1 * scene.bounds.max())
    near = float(lowest if loading.near is None else loading.near)
    far = float(highest if loading.far is None else loading.far)
    return _Optics(*size, scene.focal / loading.downscale, near, far, ndc, published)


def _make_camera(pose: Matrix4, optics: _Optics) -> AbstractCamera:
    width, height, focal = optics.width, optics.height, optics.focal
    limits = {"near": optics.near, "far": optics.far}
    if not optics.ndc:
        return PerspectiveCamera(Pose(pose), focal, width, height, **limits)
    # The frustum of the camera itself, as in `convert_to_ndc`: 2 f / width, 2 f / height.
    frustum = [2 * focal / width, 2 * focal / height]
    inner = PerspectiveCamera(Pose(pose), focal, width, height)
    return NDCCamera(inner, frustum, published=optics.published, **limits)


def _read_scene(path: pathlib.Path, spherify: bool) -> _Scene:
    columns, bounds = _read_table(path)
    height, width, focal = columns[0, :, 4]
    if not (columns[:, :, 4] > 0).all() or not np.allclose(columns[:, :, 4], columns[0, :, 4]):
        raise FileError(f"{path}: all pictures must have one size and focal length above zero.")
    nearest, farthest = bounds.min(), bounds.max()
    if not max(1, farthest) < LARGEST * nearest:
        raise FileError(f"{path}: depths from {nearest:g} to {farthest:g} differ too much.")
    # After scaling by 1 / (3/4 nearest), the nearest depth is 4/3.
    scale = 1 / (0.75 * nearest)
    poses = _convert_poses(path, columns, scale)
    facing = _least_cosine(poses, np.array([width, height]) / focal)
    if facing > -1:
        poses = recentre_poses(poses)
    else:
        poses[:, :3, 3] -= poses[:, :3, 3].mean(axis=0)
    if spherify:
        poses, more = spherify_poses(poses)
        scale = scale * more
    return _Scene(poses, scale * bounds, height, width, focal, facing)


def looks_forward(folder: str | os.PathLike) -> bool:
    """Returns true if the rays of all pixels of an LLFF data set leave forward."""
    return _read_scene(pathlib.Path(folder) / LLFF_LISTING, False).facing > _FORWARD


def _least_cosine(poses: np.ndarray, extent: np.ndarray) -> float:
    """Returns the least cosine between the mean axis and the rays of pixels; -1 without a mean.

    `extent` is the pictures' width and height in focal lengths.
    """
    mean = poses[:, :3, 2].mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length < _SHORTEST:
        return -1.0
    # d = (x, y, -1): its cosine is least at a corner of the picture.
    signs = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]) / 2
    corners = np.concatenate([signs * extent, -np.ones((4, 1))], axis=1)
    rays = corners @ poses[:, :3, :3].transpose(0, 2, 1)
    cosines = -(rays @ mean) / (np.linalg.norm(rays, axis=-1) * length)
    return float(cosines.min())


def _read_table(path: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads a 3x5 pose with size and focal length, and two depths, of each picture."""
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass an LLFF data folder.")
    table = read_array(path)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != 17:
        raise FileError(
            f"{path} must have 17 numbers for each picture; its shape is {table.shape}."
        )
    if not are_usable(table):
        raise FileError(f"{path} has numbers that are not finite, or above {LARGEST:g}.")
    # Row by row: 3x4 pose, and height, width and focal length as a fifth column; near and far
    # depth.
    columns, bounds = table[:, :15].reshape(-1, 3, 5), table[:, 15:]
    if not (bounds > 0).all() or not (bounds[:, 0] < bounds[:, 1]).all():
        raise FileError(f"{path}: depths must be positive, and the near one less than the far one.")
    return columns, bounds


def _convert_poses(path: pathlib.Path, columns: np.ndarray, scale: float) -> np.ndarray:
    """Converts the file's columns down, right, back, position to poses, world from camera."""
    down, right, back, place = (columns[:, :, index] for index in range(4))
    top = np.stack([right, -down, back, scale * place], axis=2)
    poses = np.concatenate([top, np.tile([[[0.0, 0.0, 0.0, 1.0]]], (len(top), 1, 1))], axis=1)
    for index, pose in enumerate(poses):
        as_pose(pose, f"{path}: the pose of picture {index}")
    return poses


def _find_pictures(
    folder: pathlib.Path, loading: Loading, count: int
) -> tuple[list[PictureFile], int, tuple[str, ...]]:
    """Finds the files of all pictures in order, the factor to shrink them by, and what is odd."""
    downscale = loading.downscale
    small, full = folder / f"images_{downscale}", folder / "images"
    if downscale > 1 and small.is_dir():
        place, factor = small, 1
    elif full.is_dir():
        place, factor = full, downscale
    else:
        neither = f"{small.name} nor {full.name}" if downscale > 1 else full.name
        known = ", ".join(sorted(x.name for x in folder.glob("images*") if x.is_dir())) or "none"
        raise FileError(
            f"{folder} has no folder {neither}; folders of pictures in it: {known} (choose one "
            "by --downscale)."
        )
    names = _of_one_kind(sorted(x.name for x in place.iterdir() if is_picture(x)), count)
    if len(names) != count:
        raise FileError(
            f"{place} has {len(names)} pictures; {LLFF_LISTING} has {count} poses, and has no "
            "names to find which are missing. Restore them; or, if there is a COLMAP model, pass "
            f"its folder, such as {folder / 'sparse' / '0'}, which has names."
        )
    names = [f"{place.name}/{name}" for name in names]
    files = [picture_path(folder / LLFF_LISTING, str(place), name) for name in names]
    masks, odd = [None] * count, ()
    if loading.masks:
        masks, odd = find_masks(folder, names, place.name)
    return [PictureFile(*pair) for pair in zip(files, masks, strict=True)], factor, odd


def _of_one_kind(names: list[str], count: int) -> list[str]:
    """Returns the names of one ending, if there are others, too, and so many of one alone."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(pathlib.PurePath(name).suffix.lower(), []).append(name)
    fitting = [kind for kind in kinds.values() if len(kind) == count]
    return fitting[0] if len(names) != count and len(fitting) == 1 else names


def _check_size(
    folder: pathlib.Path, file: pathlib.Path, width: int, height: int, scene: _Scene, downscale: int
) -> None:
    # Pictures of another size than the file says would have another focal length.
    expected = scene.width / downscale, scene.height / downscale
    if not np.allclose((width, height), expected, rtol=0.02, atol=1):
        raise FileError(
            f"{file} has {width}x{height} pixels; {folder / LLFF_LISTING} says "
            f"{expected[0]:g}x{expected[1]:g} with --downscale {downscale}."
        )
