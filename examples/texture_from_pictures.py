"""A grey cow gets its spots back: texels are found from 16 pictures.

The cow is `models/spot` in the folder that SCENEGRAPH_DATA names, by Keenan Crane (CC0); without
it, a ball with stripes is painted.
"""

import os
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

import scenegraph as sg


def truth() -> sg.Scene:
    """A mesh with a texture, without lights: it shows the texture's own colours."""
    path = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."), "models", "spot", "spot.obj")
    if not path.exists():
        stripes = sg.Surface(sg.Sphere(), sg.Stripes(0.2, [0.9, 0.6, 0.2], [0.2, 0.3, 0.6]))
        path = pathlib.Path("ball.glb")
        sg.save_glb(sg.Scene(sg.Group(ball=stripes)), path)
    surface = next(iter(sg.load_scene(path).root.children.values()))
    shader = surface.shader.base_color if isinstance(surface.shader, sg.GGX) else surface.shader
    # Files have linear light; a scene without lights has the numbers of pictures.
    shader = eqx.tree_at(lambda s: s.texels, shader, sg.images.linear_to_srgb(shader.texels))
    return sg.Scene(sg.Group(model=sg.Surface(surface.shape, shader)), background=[1.0, 1.0, 1.0])


def around(scene: sg.Scene, count: int, size: int) -> list[sg.PerspectiveCamera]:
    """Cameras evenly around a mesh, on a spiral from above to below."""
    vertices = np.asarray(scene["model.shape.vertices"])
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    height = 0.9 - 1.8 * (np.arange(count) + 0.5) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    ring = np.sqrt(1 - height**2)
    away = np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=1)
    middle, eyes = (low + high) / 2, (low + high) / 2 + 2 * np.max(high - low) * away
    look = sg.PerspectiveCamera.look_at
    return [look(list(eye), list(middle), [0.0, 1, 0], 0.6, size, size) for eye in eyes]


def main(
    steps: int = 300, texels: int = 256, size: int = 96, out: str = "texture_from_pictures.png"
) -> None:
    """Fits the texels, and writes truth, start and result, from a view that was not fitted."""
    scene = truth()
    *cameras, other = around(scene, 17, size)
    pictures = [sg.render(scene, camera).rgb for camera in cameras]
    grey = sg.ImageTexture(jnp.full((texels, texels, 3), 0.5), corner=[0.0, 0.0])
    start = eqx.tree_at(lambda s: s.root.children["model"].shader, scene, grey)
    batches = sg.data.RayBatches(sg.views(cameras, pictures), 4096, sg.data.Patches())
    result = sg.fit(
        start,
        batches,
        trainable="model.shader.texels",
        optimizer=optax.adam(optax.cosine_decay_schedule(5e-2, steps, 0.02)),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=25)],
    )
    found = [sg.render(result.scene, camera).rgb for camera in cameras]
    fitted = np.mean([float(sg.psnr(a, b)) for a, b in zip(found, pictures, strict=True)])
    shown = [sg.render(x, other) for x in (scene, start, result.scene)]
    sg.io.write_picture(out, sg.images.side_by_side(shown))
    print(
        f"{fitted:.1f} dB, and {float(sg.psnr(shown[2].rgb, shown[0].rgb)):.1f} dB from elsewhere"
    )


if __name__ == "__main__":
    tyro.cli(main)
