"""Eight pictures of a board calibrate a camera: `python calibrate_camera.py`."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import tyro

import scenegraph as sg


WANTED = ("cam*.pose.delta", "cam0.focal", "cam0.principal_point", "cam0.k1")
CAMERAS = tuple(f"cam{number}" for number in range(8))


def board() -> dict[str, sg.Surface]:
    """A checkerboard; a disk on it makes sure that no other view of it looks the same."""
    squares = sg.Checker(0.2, [0.9, 0.9, 0.9], [0.1, 0.1, 0.1])
    return {
        "board": sg.Surface(sg.Rectangle(size=[2.2, 1.6]), squares),
        "marker": sg.Surface(sg.Disk([0.6, 0.4, 1e-3], 0.3), sg.Constant([0.9, 0.2, 0.1])),
    }


def make(focal: float = 160.0, centre=(80.0, 60.0), k1: float = 0.1, seed: int = 0) -> sg.Scene:
    """The board, and eight views of it by one camera."""
    rng, cameras = np.random.default_rng(seed), {}
    for number, path in enumerate(CAMERAS):
        angle = 2 * np.pi * number / len(CAMERAS)
        away = (1.2 + 0.4 * (number % 2)) * np.array([np.cos(angle), np.sin(angle)])
        eye = [*away, 2.6 + 0.3 * rng.uniform()]
        pose = sg.Pose.look_at(eye, [*rng.uniform(-0.15, 0.15, 2), 0.0], [0.0, 1.0, 0.2])
        cameras[path] = sg.OpenCVCamera(pose, focal, 160, 120, principal_point=centre, k1=k1)
    scene = sg.Scene(sg.Group(**board(), **cameras), background=[0.4, 0.5, 0.6])
    for leaf in ("focal", "principal_point", "k1"):
        scene = sg.tie(scene, f"cam*.{leaf}")
    return scene


def perturbed(scene: sg.Scene, seed: int = 0) -> sg.Scene:
    """Moves the focal length by 5 %, the centre by 10 pixels, k1 by 0.05, and all poses."""
    rng = np.random.default_rng(seed)

    def unit(size: int) -> np.ndarray:
        vector = rng.normal(size=size)
        return vector / np.linalg.norm(vector)

    for path in CAMERAS:
        pose = scene.root.children[path].pose
        shift = 0.02 * np.linalg.norm(pose.offset()) * unit(3)
        delta = jnp.asarray([*shift, *np.deg2rad(3.0) * unit(3)], jnp.float32)
        scene = eqx.tree_at(lambda s, path=path: s.root.children[path].pose.delta, scene, delta)
    lens = lambda s: s["cam0"]
    off = {
        "focal": lens(scene).focal * (1 + 0.05 * rng.choice([-1, 1])),
        "principal_point": lens(scene).principal_point + 10 * unit(2),
        "k1": lens(scene).k1 + 0.05 * rng.choice([-1, 1]),
    }
    for name, value in off.items():
        value = jnp.asarray(value, jnp.float32)
        scene = eqx.tree_at(lambda s, name=name: getattr(lens(s), name), scene, value)
    return scene


def photographs(scene: sg.Scene, noise: float = 0.01, seed: int = 0) -> sg.Views:
    """Pictures with noise."""
    rng = np.random.default_rng(seed)
    pictures = [sg.render(scene, path) for path in CAMERAS]
    noisy = [np.asarray(x.rgb + noise * rng.normal(size=x.rgb.shape), np.float32) for x in pictures]
    return sg.views(CAMERAS, noisy, space=pictures[0].space)


# Widths of cones in pixels, as wide as two squares of the board at first; iterations, and pixels.
STAGES = ((24.0, 6, 4000), (8.0, 5, 4000), (1.0, 9, 10_000))


def calibrate(guess: sg.Scene, views: sg.Views, steps: int = 20) -> list[sg.SolveResult]:
    """Solves with blurred pictures first, which lead from farther away, then with sharp ones."""
    results = []
    for width, most, pixels in STAGES:
        blur = None if width == 1 else sg.data.Annealing(start=width, steps=100_000)
        result = sg.solve(
            guess,
            views,
            # Blurred pictures hardly determine the distortion, which then leads astray.
            trainable=WANTED if width < 20 else WANTED[:-1],
            steps=min(most, steps),
            annealing=blur,
            pixels=pixels,
            covariance="auto" if width == 1 else None,
        )
        guess = result.scene
        results.append(result)
    return results


def main(steps: int = 20, seed: int = 0) -> None:
    """Calibrates, and prints what was found with its standard errors."""
    truth = make()
    views = photographs(truth, seed=seed)
    stages = calibrate(perturbed(truth, seed), views, steps)
    for stage in stages:
        print(f"{stage.reason} {stage.renders} renderings, costs {stage.costs}")
    result = stages[-1]
    assert result.uncertainty is not None
    found, true = (s["cam0"] for s in (result.scene, truth))
    for name in ("focal", "principal_point", "k1"):
        error = result.uncertainty.standard_errors[f"cam0.{name}"]
        print(f"{name}: {getattr(found, name)} +- {error}, true {getattr(true, name)}")


if __name__ == "__main__":
    tyro.cli(main)
