"""Scale and colours of a floor and the place of a lamp, from one picture: `checker_inverse.py`."""

import jax
import optax
import tyro

import scenegraph as sg


def make(scale: float, color_a: list[float], color_b: list[float], lamp: list[float]) -> sg.Scene:
    """A ball on a chequered floor under a lamp."""
    board = sg.Checker(scale=scale, color_a=color_a, color_b=color_b)
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert(board)),
            ball=sg.Surface(
                sg.Sphere(center=[0.0, 0.0, 0.5], radius=0.5), sg.Lambert([0.2, 0.8, 0.3])
            ),
            lamp=sg.PointLight(position=lamp, intensity=[20.0, 20.0, 20.0]),
        ),
        background=sg.Constant([1.0, 1.0, 1.0]),
    )


def main(steps: int = 600, out: str = "checker_inverse.png") -> None:
    """Fits one picture and writes truth, start and result side by side."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[0.0, -4.0, 2.0],
        target=[0.0, 0.0, 0.5],
        up=[0.0, 0.0, 1.0],
        fov_x=0.7,
        width=128,
        height=128,
    )
    truth = sg.render(make(2.0, [0.9, 0.1, 0.1], [0.1, 0.1, 0.9], [2.0, -2.0, 4.0]), camera)
    start = make(1.8, [0.5, 0.5, 0.5], [0.4, 0.4, 0.4], [1.5, -1.6, 4.4])
    result = sg.fit(
        start,
        sg.views(camera, truth),
        trainable=["floor.shader.*.scale", "floor.shader.*.color_*", "lamp.position"],
        optimizer=optax.adam(2e-2),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=100)],
    )
    pictures = [truth, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    children = result.scene.root.children
    board = children["floor"].shader.albedo
    print(f"scale {board.scale:.5f}, colours {board.color_a} and {board.color_b}")
    print(f"lamp at {children['lamp'].position}")


if __name__ == "__main__":
    tyro.cli(main)
