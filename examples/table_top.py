"""A table-top, its depths and normals, and what a lamp changes in it: `python table_top.py`.

`--run runs/first` adds the same view of a fitted run; the README's strip is made in this way.
"""

import jax
import jax.numpy as jnp
import numpy as np
import tyro

import scenegraph as sg


EYE = [2.3, -2.6, 2.0]


def lit_by(lamp: jax.Array) -> sg.Scene:
    """The table-top, with its lamp at a place."""
    scene = sg.diagnostics.table_top()
    light = sg.PointLight(lamp, scene["lamp.intensity"])
    root = sg.Group(**{**scene.root.children, "lamp": light})
    return sg.Scene(root, background="white", integrator=scene.integrator)


def look_from(eye: list[float], size: int) -> sg.PerspectiveCamera:
    """A camera that has all of the table in its picture."""
    return sg.PerspectiveCamera.look_at(eye, [0, 0, -0.1], [0, 0, 1], 0.66, size, size, 1.6, 6.4)


def main(
    steps: int = 4, size: int = 128, run: str | None = None, out: str = "table_top.png"
) -> None:
    """Finds the lamp by Gauss-Newton steps; writes colours, depths, normals and the derivative."""
    camera = look_from(EYE, size)
    true_lamp = sg.diagnostics.table_top()["lamp.position"]
    image = sg.render(lit_by(true_lamp), camera, outputs=["normal"])

    @jax.jit
    def with_change(lamp: jax.Array, along: jax.Array) -> tuple[jax.Array, jax.Array]:
        # A picture and its derivative along a movement of the lamp.
        colors = lambda lamp: sg.render(lit_by(lamp), camera).rgb
        return jax.jvp(colors, (lamp,), (along,))

    lamp = true_lamp + jnp.array([-0.3, 0.3, 0.2])
    for step in range(steps):
        pictures, columns = zip(*(with_change(lamp, axis) for axis in jnp.eye(3)), strict=True)
        jacobian = np.stack([np.ravel(column) for column in columns], axis=1)
        difference = np.ravel(image.rgb - pictures[0])
        lamp = lamp + np.linalg.lstsq(jacobian, difference, rcond=None)[0]
        off = float(jnp.linalg.norm(lamp - true_lamp))
        print(f"step {step + 1}: the lamp is {off:.5f} from its place")
    _, change = with_change(true_lamp, jnp.array([1.0, 0.0, 0.0]))
    panels = [sg.images.as_bytes(image), *depths_and_normals(image), signed(change)]
    if run is not None:
        fitted = sg.render(sg.load(run), camera)
        panels.insert(1, sg.images.as_bytes(fitted))
    # The upper quarter is empty.
    sg.io.write_picture(out, np.concatenate(panels, axis=1)[size // 4 :])


def depths_and_normals(image: sg.Image) -> list[np.ndarray]:
    """Near is bright; a normal's x, y and z are red, green and blue. Both fade to white."""
    alpha = np.asarray(image.alpha)[..., None]
    depth = np.asarray(image.depth)[..., None]
    near, far = np.quantile(depth[alpha > 0.9], [0.0, 1.0])
    bright = np.clip((far - depth) / (far - near), 0, 1) * np.array([1.0, 0.85, 0.55])
    normal = 0.5 + 0.5 * np.asarray(image.normal)
    fade = lambda x: np.round(255 * np.clip(alpha * x + 1 - alpha, 0, 1)).astype(np.uint8)
    return [fade(bright), fade(normal)]


def signed(change: jax.Array) -> np.ndarray:
    """Red where pixels get brighter, blue where they get darker, white where nothing changes."""
    mean = np.asarray(change).mean(axis=2)
    strength = np.clip(mean / np.quantile(np.abs(mean), 0.98), -1, 1)[..., None]
    red, blue = np.array([0.8, 0.1, 0.05]), np.array([0.05, 0.2, 0.75])
    color = np.where(strength > 0, red, blue)
    return np.round(255 * (1 - np.abs(strength) * (1 - color))).astype(np.uint8)


if __name__ == "__main__":
    tyro.cli(main)
