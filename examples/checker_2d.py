"""A checkerboard straight over the picture finds its scale and colours: `python checker_2d.py`.

No light and no perspective: every pixel is a square of the board, and the mean of the board over
that square is what it shows. A hard test (is this point black?) would give the scale no gradient.
"""

import jax
import optax
import tyro

import scenegraph as sg


def make(scale: float, color_a: list[float], color_b: list[float]) -> sg.Scene:
    """A plane that shows its colours whatever the light."""
    board = sg.Checker(scale=scale, color_a=color_a, color_b=color_b)
    return sg.Scene(sg.Group(board=sg.Surface(sg.Plane(), board)))


def main(steps: int = 400, out: str = "checker_2d.png") -> None:
    """Fits one picture and writes truth, start and result side by side."""
    camera = sg.OrthographicCamera.look_at(
        eye=[0.0, 0.0, 1.0],
        target=[0.0, 0.0, 0.0],
        up=[0.0, 1.0, 0.0],
        extent=4.0,
        width=100,
        height=100,
    )
    truth = sg.render(make(0.55, [0.9, 0.8, 0.1], [0.1, 0.2, 0.6]), camera)
    start = make(0.47, [0.5, 0.5, 0.5], [0.4, 0.4, 0.4])
    result = sg.fit(
        start,
        sg.views(camera, truth),
        optimizer=optax.adam(optax.cosine_decay_schedule(2e-2, steps)),
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=100)],
    )
    pictures = [truth, sg.render(start, camera), sg.render(result.scene, camera)]
    sg.io.write_picture(out, sg.images.side_by_side(pictures))
    board = result.scene["board.shader"]
    print(f"scale {board.scale:.5f}, colours {board.color_a} and {board.color_b}")


if __name__ == "__main__":
    tyro.cli(main)
