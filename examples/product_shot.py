"""A textured cow, a metal ball and a glass ball under a panorama: `python product_shot.py`.

The cow (Keenan Crane, public domain) and the panorama (Poly Haven, CC0) are files of the folder
SCENEGRAPH_DATA; `--mesh` and `--panorama` name others. Without any, a box is under a plain sky.
"""

import os
import pathlib

import jax
import jax.numpy as jnp
import tyro

import scenegraph as sg


DATA = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."))


def make(mesh: pathlib.Path, panorama: pathlib.Path) -> sg.Scene:
    """The things on their table, and light from all around."""
    if mesh.exists():
        cow = sg.load_scene(mesh).root
    else:
        cow = sg.Surface(sg.Box([-0.4, -0.4, -0.7], [0.4, 0.4, 0.9]), sg.Lambert("tomato"))
    texels = sg.Image.load(panorama) if panorama.exists() else jnp.full((32, 64, 3), 0.5)
    sky = sg.EnvironmentLight(texels)
    turn = sg.Similarity(translation=[0.0, 0.0, 0.74], rotation=[0.9, 0.0, 0.0, 0.44])
    steel = sg.Principled([0.95, 0.93, 0.9], metallic=1.0, roughness=0.1)
    glass = sg.Principled("white", transmission=1.0, ior=1.5, roughness=0.0)
    wood = sg.Principled([0.30, 0.17, 0.09], roughness=0.35)
    return sg.Scene(
        sg.Group(
            cow=sg.Transformed(cow, turn),
            steel=sg.Surface(sg.Sphere([-1.25, -0.2, 0.5], 0.5), steel),
            glass=sg.Surface(sg.Sphere([1.05, -0.6, 0.35], 0.35), glass),
            table=sg.Surface(sg.Cylinder([0.0, 0.0, -0.05], 2.4, 0.1), wood),
            sky=sky,
        ),
        background=sky,
    )


def main(
    steps: int = 4,
    width: int = 960,
    mesh: pathlib.Path = DATA / "models/spot/spot.obj",
    panorama: pathlib.Path = DATA / "hdr/pedestrian_overpass_1k.hdr",
    out: str = "product_shot.png",
) -> None:
    """Draws the picture with sixteen paths a pixel for every step."""
    camera = sg.PerspectiveCamera.look_at(
        [0.4, -5.6, 1.9], [0.0, 0.0, 0.75], [0.0, 0.0, 1.0], 0.7, width, width * 9 // 16
    )
    path = sg.Path(samples=16 * steps, bounces=6)
    film = [sg.Exposure(0.4), sg.AgxToneMap()]
    scene = make(mesh, panorama)
    sg.render(scene, camera, path, key=jax.random.key(0), filters=film).save(out)


if __name__ == "__main__":
    tyro.cli(main)
