"""A picture of cameras and points, from above and from the side."""

import os

import numpy as np

from ..io import atomic_write, ColmapModel


# Points beyond this percentile of the distance from their middle are left out, and so many drawn.
_REACH, _POINTS = 95, 20_000
# The length of a frustum, as a share of what is drawn.
_LENGTH = 0.06


def draw_cameras(
    path: str | os.PathLike, poses: np.ndarray, model: ColmapModel, turn: np.ndarray
) -> None:
    """Draws cameras as frusta, and points in their colours, into a PNG file."""
    # Here and not above: a plain import of the library does not load it.
    from matplotlib.figure import Figure

    points, colors = _central_points(model, turn)
    places = poses[:, :3, 3]
    shown = np.concatenate([places, points])
    lower, upper = shown.min(axis=0), shown.max(axis=0)
    length = _LENGTH * float(np.max(upper - lower))
    frusta = _frusta(poses, model, length)
    figure = Figure(figsize=(12, 6), layout="constrained")
    for axes, (a, b), title in zip(
        figure.subplots(1, 2), ((0, 1), (0, 2)), ("from above", "from the side"), strict=True
    ):
        axes.scatter(points[:, a], points[:, b], s=1.5, c=colors / 255, linewidths=0)
        for lines in frusta:
            axes.plot(lines[:, a], lines[:, b], color="tab:red", linewidth=0.7)
        axes.set(aspect="equal", title=title, xlabel="xyz"[a], ylabel="xyz"[b])
        axes.grid(alpha=0.3)
    figure.suptitle(f"{len(poses)} cameras, {len(model.points):,} points")
    with atomic_write(path) as beside:
        figure.savefig(beside, dpi=100, format="png")


def _central_points(model: ColmapModel, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns points with z up, without those far away, and their colours."""
    points = model.points @ turn.T
    if not len(points):
        return points, model.colors
    away = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    near = np.flatnonzero(away <= np.percentile(away, _REACH))
    some = near[np.linspace(0, len(near) - 1, min(len(near), _POINTS)).astype(int)]
    return points[some], model.colors[some]


def _frusta(poses: np.ndarray, model: ColmapModel, length: float) -> np.ndarray:
    """Returns the edges of frusta in one stroke each, `cameras 10 3`."""
    strokes = []
    for pose, image in zip(poses, model.images, strict=True):
        camera = model.cameras[image.camera]
        focal = camera.parameters.get("f", camera.parameters.get("fx", 1.0))
        x, y = 0.5 * camera.width / focal, 0.5 * camera.height / focal
        corners = length * np.array([[-x, -y, -1], [x, -y, -1], [x, y, -1], [-x, y, -1]])
        tip = np.zeros((1, 3))
        # Tip, two corners, tip, two corners, and round the far end.
        order = [tip, corners[:2], tip, corners[2:], tip, corners[:1], corners[3:], corners[1:3]]
        local = np.concatenate(order)
        strokes.append(local @ pose[:3, :3].T + pose[:3, 3])
    return np.stack(strokes)
