"""A gold ball and a glass ball on a floor, under a panel: `python glass_and_metal.py`.

`--samples 256` draws what paths of light show, beside it.
"""

import jax
import tyro

import scenegraph as sg


def make() -> sg.Scene:
    """The balls, the floor and the panel, which is a lamp with a size."""
    gold = sg.Principled(base_color=[0.9, 0.6, 0.2], metallic=1.0, roughness=0.2)
    glass = sg.Principled(base_color="white", transmission=1.0, ior=1.5, roughness=0.0)
    tiles = sg.Lambert(sg.Checker(0.25, [0.6, 0.6, 0.6], [0.35, 0.35, 0.38]))
    return sg.Scene(
        sg.Group(
            lamp=sg.RectangleLight(
                center=[0.0, 0.0, 2.0],
                edge_u=[0.5, 0.0, 0.0],
                edge_v=[0.0, 0.5, 0.0],
                radiance=[10.0, 10.0, 10.0],
            ),
            sky=sg.AmbientLight([0.06, 0.07, 0.09]),
            ball=sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), gold),
            glass=sg.Surface(sg.Sphere([1.0, 0.0, 0.4], 0.4), glass),
            floor=sg.Surface(sg.Plane(), tiles),
        ),
        background=[0.2, 0.2, 0.2],
    )


def main(
    steps: int = 2, width: int = 1280, samples: int = 0, out: str = "glass_and_metal.png"
) -> None:
    """Draws the picture, with `steps` times `steps` cones a pixel."""
    camera = sg.PerspectiveCamera.look_at(
        eye=[1.1, -4.0, 1.7],
        target=[0.45, 0.0, 0.42],
        up=[0.0, 0.0, 1.0],
        fov_x=0.62,
        width=width,
        height=width * 9 // 16,
    )
    film = [sg.AgxToneMap()]
    pictures = [sg.render(make(), camera, samples_per_pixel=steps**2, filters=film)]
    if samples > 0:
        path = sg.Path(samples=samples, bounces=6)
        pictures.append(sg.render(make(), camera, path, key=jax.random.key(0), filters=film))
    sg.io.write_picture(out, sg.images.side_by_side(pictures))


if __name__ == "__main__":
    tyro.cli(main)
