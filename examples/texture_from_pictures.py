"""A grey cow gets its spots back from 24 pictures: `python texture_from_pictures.py`.

The cow is `models/spot` in the folder that SCENEGRAPH_DATA names, by Keenan Crane (CC0); any other
mesh with a texture is an argument, `--mesh model.glb`, and without either a ball is painted.
"""

import os
import pathlib
import tempfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

import scenegraph as sg


def truth(path: pathlib.Path | None) -> sg.Scene:
    """A mesh with a texture, without lights: it shows the texture's own colours."""
    spot = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."), "models", "spot", "spot.obj")
    path = spot if path is None and spot.exists() else path
    with tempfile.TemporaryDirectory() as folder:
        if path is None:
            stripes = sg.Surface(sg.Sphere(), sg.Stripes(0.2, [0.9, 0.6, 0.2], [0.2, 0.3, 0.6]))
            path = pathlib.Path(folder, "ball.glb")
            sg.save_glb(sg.Scene(sg.Group(ball=stripes)), path)
        surface = next(iter(sg.load_scene(path).root.children.values()))
    shader = surface.shader.base_color if isinstance(surface.shader, sg.GGX) else surface.shader
    # Files have linear light; a scene without lights has the numbers of pictures.
    painted = eqx.tree_at(lambda s: s.texels, shader, replace_fn=sg.images.linear_to_srgb)
    return sg.Scene(
        sg.Group(model=sg.Surface(surface.shape, painted)),
        background=[1.0, 1.0, 1.0],
        integrator=sg.Surfaces(4),
    )


def around(scene: sg.Scene, count: int, size: int, turn: float) -> list[sg.PerspectiveCamera]:
    """Cameras evenly around a mesh, on a spiral from above to below that begins at an angle."""
    vertices = np.asarray(scene["model.shape.vertices"])
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    height = 0.9 - 1.8 * (np.arange(count) + 0.5) / count
    angle = turn + np.arange(count) * np.pi * (3 - 5**0.5)
    ring = np.sqrt(1 - height**2)
    away = np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=1)
    middle, eyes = (low + high) / 2, (low + high) / 2 + 2 * np.max(high - low) * away
    look = sg.PerspectiveCamera.look_at
    return [look(list(eye), list(middle), [0.0, 1, 0], 0.6, size, size) for eye in eyes]


class Pictures(eqx.Module):
    """Batches of some pictures with their cameras, stacked."""

    cameras: sg.PerspectiveCamera
    rgb: jax.Array

    def __init__(self, scene: sg.Scene, cameras: list[sg.PerspectiveCamera]):
        self.cameras = jax.tree.map(lambda *x: jnp.stack(x), *cameras)
        self.rgb = jnp.stack([sg.render(scene, camera).rgb for camera in cameras])

    def batch(self, seed: jax.Array, step: jax.Array) -> "Pictures":
        """Takes every eighth picture, in turn."""
        del seed
        some = step % 8 + 8 * jnp.arange(len(self.rgb) // 8)
        return jax.tree.map(lambda x: x[some], self)


def mismatch(scene: sg.Scene, state: None, batch: Pictures, key: jax.Array) -> tuple:
    """The mean squared error of some pictures."""
    del key
    draw = lambda camera: sg.render(scene, camera).rgb
    return jnp.mean((jax.lax.map(draw, batch.cameras) - batch.rgb) ** 2), state


def main(
    steps: int = 200,
    mesh: pathlib.Path | None = None,
    texels: int = 256,
    size: int = 128,
    out: str = "texture_from_pictures.png",
) -> float:
    """Fits the texels; returns the PSNR of four pictures from elsewhere, and shows one of them."""
    scene = truth(mesh)
    grey = sg.ImageTexture(jnp.full((texels, texels, 3), 0.5), corner=[0.0, 0.0])
    start = eqx.tree_at(lambda s: s["model.shader"], scene, grey)
    result = sg.fit(
        start,
        Pictures(scene, around(scene, 24, size, 0.0)),
        trainable="model.shader.texels",
        optimizer=optax.adam(optax.cosine_decay_schedule(5e-2, steps, 0.02)),
        loss=mismatch,
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=25)],
    )
    others = around(scene, 4, size, 1.0)
    pictures = [[sg.render(x, c) for x in (scene, start, result.scene)] for c in others]
    sg.io.write_picture(out, sg.images.side_by_side(pictures[1]))
    quality = float(np.mean([float(sg.psnr(found.rgb, true.rgb)) for true, _, found in pictures]))
    print(f"{quality:.1f} dB from elsewhere")
    return quality


if __name__ == "__main__":
    tyro.cli(main)
