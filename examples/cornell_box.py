"""A box with a red and a green wall, by paths of light: `python cornell_box.py`."""

import math

import jax
import tyro

import scenegraph as sg


WHITE, RED, GREEN = [0.73, 0.73, 0.73], [0.63, 0.06, 0.05], [0.14, 0.45, 0.09]


def wall(center: list[float], rotation: list[float], color: list[float]) -> sg.Transformed:
    """A square of two by two, in a place and turned."""
    square = sg.Surface(sg.Rectangle(size=[2.0, 2.0]), sg.Lambert(color))
    return sg.Transformed(square, sg.Similarity(translation=center, rotation=rotation))


def block(center: list[float], half: list[float], angle: float) -> sg.Transformed:
    """A white block, turned about the vertical."""
    box = sg.Surface(sg.Box([-x for x in half], half), sg.Lambert(WHITE))
    turn = [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
    return sg.Transformed(box, sg.Similarity(translation=center, rotation=turn))


def make() -> sg.Scene:
    """The box, open to the front: light reaches the ceiling only from walls and floor."""
    s = 0.5**0.5
    return sg.Scene(
        sg.Group(
            floor=wall([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], WHITE),
            ceiling=wall([0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0], WHITE),
            back=wall([0.0, 1.0, 1.0], [s, s, 0.0, 0.0], WHITE),
            left=wall([-1.0, 0.0, 1.0], [s, 0.0, s, 0.0], RED),
            right=wall([1.0, 0.0, 1.0], [s, 0.0, s, 0.0], GREEN),
            tall=block([-0.33, 0.3, 0.6], [0.3, 0.3, 0.6], -0.3),
            small=block([0.35, -0.35, 0.3], [0.3, 0.3, 0.3], 0.3),
            lamp=sg.RectangleLight(
                [0.0, 0.0, 1.99], [0.25, 0, 0], [0, -0.25, 0], [17.0, 12, 4], two_sided=False
            ),
        )
    )


def main(steps: int = 6, size: int = 960, out: str = "cornell_box.png") -> None:
    """Draws the picture with sixteen paths a pixel for every step."""
    camera = sg.PerspectiveCamera.look_at(
        [0.0, -4.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], 0.66, size, size
    )
    path = sg.Path(samples=16 * steps, bounces=8)
    film = [sg.Exposure(0.6), sg.AgxToneMap()]
    sg.render(make(), camera, path, key=jax.random.key(0), filters=film).save(out)


if __name__ == "__main__":
    tyro.cli(main)
