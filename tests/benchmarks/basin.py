"""From how far away the checkerboard's scale is found, with and without wide cones: a plot."""

import pathlib

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from measure import report

import scenegraph as sg


TRUE = 2.0
_BLACK, _WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
# Pixels. The cells are some 40 pixels wide when the scale is half the true one: narrower rays see
# that they are in the wrong places, and not that there are too many.
_WIDEST = 40.0
WANTED = ["floor.shader.*.scale", "floor.shader.*.color_*", "lamp.position"]


def main(
    steps: int = 600,
    out: pathlib.Path = pathlib.Path("docs/benchmarks/basin.json"),
    picture: pathlib.Path = pathlib.Path("docs/pictures/basin.png"),
) -> None:
    """Loss by scale for several widths of rays, and where fits from many scales end.

    The loss is that of the best colours for each scale: a fit finds them long before the scale.
    """
    camera = sg.PerspectiveCamera.look_at(
        [0.0, -4.0, 2.0], [0.0, 0.0, 0.5], [0.0, 0.0, 1.0], 0.7, 128, 128
    )
    truth = sg.render(_make(TRUE), camera)
    views, scales = sg.views(camera, truth), np.linspace(0.8, 3.2, 97)
    widths = (1.0, 12.0, _WIDEST)
    curves = {width: _losses(views, width, scales) for width in widths}
    starts = TRUE * (1 + np.linspace(-0.5, 0.5, 11))
    plans = {"one pixel": None, f"from {_WIDEST:g} pixels": sg.data.Annealing(_WIDEST, steps // 2)}
    ends = {name: [_fit(views, x, steps, plan) for x in starts] for name, plan in plans.items()}
    _draw(picture, scales, curves, starts, ends)
    report(out, {"true": TRUE, "steps": steps, "starts": starts.tolist(), "ends": ends})


def _make(scale, color_a=(0.9, 0.1, 0.1), color_b=(0.1, 0.1, 0.9), lamp=(2.0, -2.0, 4.0)):
    board = sg.Checker(scale=scale, color_a=color_a, color_b=color_b)
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert(board)),
            ball=sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), sg.Lambert([0.2, 0.8, 0.3])),
            lamp=sg.PointLight(lamp, [20.0, 20.0, 20.0]),
        ),
        background=sg.Constant([1.0, 1.0, 1.0]),
    )


def _losses(views: sg.Views, width: float, scales: np.ndarray) -> list[float]:
    indices = jnp.arange(0, views.pixels.shape[0], 3)
    means, inside = views.means(indices, sg.data.Annealing(width, 1), jnp.asarray(width))
    inside = np.asarray(inside)
    rays = views.rays(indices, width)

    @jax.jit
    def shown(scale):
        colors = [_BLACK, _BLACK], [_WHITE, _BLACK], [_BLACK, _WHITE]
        return [sg.render_rays(_make(scale, *pair), rays)[-1].rgb for pair in colors]

    def loss(scale: float) -> float:
        neither, first, second = (np.asarray(rgb, float)[inside] for rgb in shown(scale))
        parts = np.stack([first - neither, second - neither], axis=1)
        wanted = np.asarray(means, float)[inside] - neither
        fits = [np.linalg.lstsq(parts[..., c], wanted[:, c])[1][0] for c in range(3)]
        return sum(fits) / len(wanted)

    return [loss(scale) for scale in scales]


def _fit(views: sg.Views, scale: float, steps: int, plan: sg.data.Annealing | None) -> float:
    start = _make(scale, (0.5, 0.5, 0.5), (0.4, 0.4, 0.4), (1.5, -1.6, 4.4))
    result = sg.fit(
        start,
        views,
        trainable=WANTED,
        optimizer=optax.adam(2e-2),
        steps=steps,
        key=jax.random.key(0),
        annealing=plan,
    )
    return float(result.scene.root.children["floor"].shader.albedo.scale)


def _draw(picture, scales, curves, starts, ends) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for width, losses in curves.items():
        left.plot(scales, np.divide(losses, max(losses)), label=f"rays {width:g} pixels wide")
    left.set(
        xlabel="scale (the true one is 2)",
        ylabel="part of the largest loss",
        title="Loss with the best colours",
    )
    for name, values in ends.items():
        right.plot(starts, values, "o-", label=name)
    right.axhline(TRUE, color="grey", lw=0.8)
    right.set(xlabel="scale at the start", ylabel="scale at the end", title="Fits, nothing known")
    for axes in (left, right):
        axes.legend()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
