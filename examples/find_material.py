"""Metal and paint are found from one picture of two balls: `python find_material.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

import scenegraph as sg


def sky() -> sg.EnvironmentLight:
    """A sky with a bright window in it, and a dark floor."""
    texels = jnp.full((32, 64, 3), 0.4) * jnp.array([0.8, 0.9, 1.0])
    texels = texels.at[16:].set(0.15).at[6:14, 34:46].set(6.0).at[8:12, 10:14].set(4.0)
    return sg.EnvironmentLight(texels, samples=16)


def make(metal: list[float], rough: float, paint: list[float], gloss: float) -> sg.Scene:
    """A metal and a painted ball, under the sky, one unlike the other in colour and roughness."""
    metal_look = sg.Principled(metal, metallic=1.0, roughness=rough)
    paint_look = sg.Principled(paint, metallic=0.0, roughness=gloss)
    return sg.Scene(
        sg.Group(
            metal=sg.Surface(sg.Sphere([-0.55, 0.0, 0.0], 0.5), metal_look),
            paint=sg.Surface(sg.Sphere([0.55, 0.0, 0.0], 0.5), paint_look),
            sky=sky(),
        ),
        background=[0.0, 0.0, 0.0],
        integrator=sg.Surfaces(layers=2, bounces=1),
    )


PATHS = [
    f"{ball}.shader.{x}" for ball in ("metal", "paint") for x in ("base_color.color", "roughness")
]


def numbers(scene: sg.Scene) -> np.ndarray:
    """All that is to be found: three of a colour and a roughness, for each ball."""
    return np.concatenate([np.ravel(scene[path]) for path in PATHS])


def main(steps: int = 200, size: int = 48, out: str = "find_material.png") -> float:
    """Fits both materials; returns the largest error of a number."""
    camera = sg.PerspectiveCamera.look_at(
        [0.0, -4.0, 0.6], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.6, 2 * size, size
    )
    truth = make([0.9, 0.6, 0.3], 0.25, [0.2, 0.35, 0.6], 0.4)
    start = make([0.5, 0.5, 0.5], 0.6, [0.5, 0.5, 0.5], 0.7)
    target = sg.render(truth, camera)
    result = sg.fit(
        start,
        sg.views(camera, target),
        trainable=PATHS,
        optimizer=optax.adam(optax.cosine_decay_schedule(3e-2, steps)),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=50)],
    )
    pictures = [target, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    for name, scene in (("true", truth), ("start", start), ("found", result.scene)):
        print(f"{name:6}" + "".join(f"{x:7.3f}" for x in numbers(scene)))
    return float(np.max(np.abs(numbers(result.scene) - numbers(truth))))


if __name__ == "__main__":
    tyro.cli(main)
