"""Four pictures say where a hundred balls are, and the lamp: `python hundred_balls.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

import scenegraph as sg


COUNT = 100


def make(moved: float = 0.0) -> sg.Scene:
    """Balls over a floor under a lamp; if `moved` is given, elsewhere, of one size and grey."""
    draw = np.random.default_rng(0)
    side = np.stack(np.meshgrid(*[np.linspace(-2.7, 2.7, 10)] * 2), axis=-1).reshape(-1, 2)
    centers = np.concatenate([side, np.zeros((COUNT, 1))], axis=1)
    centers += draw.uniform([-0.15, -0.15, 0.25], [0.15, 0.15, 0.7], (COUNT, 3))
    radii, colors = draw.uniform(0.13, 0.22, COUNT), draw.uniform(0.1, 0.9, (COUNT, 3))
    if moved:
        centers += moved * draw.normal(size=centers.shape)
        radii, colors = np.full(COUNT, 0.17), np.full((COUNT, 3), 0.5)
    # One ball of radius one, at a hundred places, in as many sizes and colours.
    places = jax.vmap(lambda at, size: sg.Similarity(at, scale=size))(
        jnp.asarray(centers), jnp.asarray(radii)
    )
    ball = sg.Surface(sg.Sphere(), sg.Lambert([0.5, 0.5, 0.5]))
    return sg.Scene(
        sg.Group(
            balls=sg.Instances(ball, places, {"shader.albedo.color": colors}),
            floor=sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(1.0, [0.8] * 3, [0.5] * 3))),
            lamp=sg.PointLight(np.array([2.0, -2.0, 6.0]) + 5 * moved, [60.0, 60.0, 60.0]),
        )
    )


def cameras(size: int) -> list[sg.PerspectiveCamera]:
    """Four corners of the floor, from above."""
    return [
        sg.PerspectiveCamera.look_at(
            [5.0 * x, 5.0 * y, 6.0], [0.0, 0.0, 0.2], [0.0, 0.0, 1.0], 0.8, size, size
        )
        for x in (-1, 1)
        for y in (-1, 1)
    ]


def main(steps: int = 400, size: int = 128, out: str = "hundred_balls.png") -> None:
    """Fits places, sizes, colours and lamp; writes truth, start and result side by side."""
    truth, start = make(), make(moved=0.04)
    eyes = cameras(size)
    result = sg.fit(
        start,
        sg.views(eyes, [sg.render(truth, eye) for eye in eyes]),
        trainable=[
            "balls.transforms.translation",
            "balls.transforms.scale",
            "balls.values.**",
            "lamp.position",
        ],
        optimizer=optax.adam(optax.cosine_decay_schedule(1e-2, steps, 0.1)),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=50)],
    )
    pictures = [sg.render(scene, eyes[0]) for scene in (truth, start, result.scene)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    for name, scene in (("start", start), ("result", result.scene)):
        print(name, *(f"{what} {error:.4f}" for what, error in errors(truth, scene).items()))


def errors(truth: sg.Scene, scene: sg.Scene) -> dict[str, float]:
    """Root mean square errors of centres, radii and colours, and the distance of the lamps."""
    a, b = truth.root.children, scene.root.children
    error = lambda x, y: float(jnp.sqrt(jnp.mean((x - y) ** 2)))
    return {
        "centre": error(a["balls"].transforms.translation, b["balls"].transforms.translation),
        "radius": error(a["balls"].transforms.scale, b["balls"].transforms.scale),
        "colour": error(*(x["balls"].values["shader.albedo.color"] for x in (a, b))),
        "lamp": float(jnp.linalg.norm(a["lamp"].position - b["lamp"].position)),
    }


if __name__ == "__main__":
    tyro.cli(main)
