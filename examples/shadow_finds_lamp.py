"""The lamp is out of the picture; its shadows tell where it is: `python shadow_finds_lamp.py`."""

import jax
import optax
import tyro

import scenegraph as sg


def make(lamp: list[float]) -> sg.Scene:
    """A pole and a ball whose shadows fall on a wall and a floor."""
    wall = sg.Transformed(
        sg.Surface(sg.Plane(), sg.Lambert([0.8, 0.8, 0.8])),
        sg.Similarity(translation=[0.0, 1.0, 0.0], rotation=[0.7071, 0.7071, 0.0, 0.0]),
    )
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert([0.8, 0.8, 0.8])),
            wall=wall,
            pole=sg.Surface(
                sg.Capsule([-0.5, 0.0, 0.0], [-0.5, 0.0, 0.9], 0.05), sg.Lambert([0.8, 0.3, 0.2])
            ),
            ball=sg.Surface(sg.Sphere([0.4, 0.1, 0.3], 0.3), sg.Lambert([0.2, 0.4, 0.8])),
            lamp=sg.PointLight(lamp, [30.0, 30.0, 30.0]),
        )
    )


def main(steps: int = 400, out: str = "shadow_finds_lamp.png") -> None:
    """Fits the lamp's place and writes truth, start and result side by side."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -4.0, 1.4],
        target=[0.0, 0.3, 0.5],
        up=[0.0, 0.0, 1.0],
        fov_x=0.7,
        width=128,
        height=96,
    )
    truth = sg.render(make([1.8, -2.2, 3.0]), camera)
    start = make([0.6, -2.8, 3.6])
    result = sg.fit(
        start,
        sg.views(camera, truth),
        trainable="lamp.position",
        optimizer=optax.adam(optax.cosine_decay_schedule(5e-2, steps)),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=100)],
    )
    pictures = [truth, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    print(f"the lamp is at {result.scene['lamp.position']}")


if __name__ == "__main__":
    tyro.cli(main)
