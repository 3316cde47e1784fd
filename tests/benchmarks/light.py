"""Every lamp on every material: closed forms beside random paths.

A ball and a table of one material, and a black ball over the table that throws a shadow: no light
bounces between surfaces but by mirrors.
"""

import dataclasses
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from measure import report

import scenegraph as sg


PLACE = [0.4, -0.6, 2.2]
LAMPS = {
    "point": lambda: sg.PointLight(PLACE, [6.0] * 3),
    "spot": lambda: sg.SpotLight(PLACE, [-0.2, 0.3, -1.0], [9.0] * 3, 0.9, 0.3),
    "directional": lambda: sg.DirectionalLight([-0.2, 0.3, -1.0], [2.0] * 3),
    "rectangle": lambda: sg.RectangleLight(PLACE, [0.4, 0, 0], [0, 0.3, 0.1], [9.0] * 3),
    "disk": lambda: sg.DiskLight(PLACE, [-0.2, 0.3, -1.0], 0.4, [9.0] * 3),
    "sphere": lambda: sg.SphereLight(PLACE, 0.35, [9.0] * 3),
    "mesh": lambda: sg.MeshLight(
        [[0.0, -0.9, 2.2], [0.8, -0.9, 2.2], [0.8, -0.3, 2.4], [0.0, -0.3, 2.4]],
        [[0, 1, 2], [0, 2, 3]],
        [9.0] * 3,
    ),
    "environment": lambda: sg.EnvironmentLight(
        0.2 + np.linspace(2, 0, 16)[:, None, None] ** 2 * np.ones((16, 32, 3)), samples=64
    ),
}
GOLD = [0.9, 0.6, 0.2]
MATERIALS = {
    "Lambert": lambda: sg.Lambert(GOLD),
    "Phong": lambda: sg.Phong(GOLD, [0.1] * 3, 20.0),
    "GGX, rough": lambda: sg.GGX(GOLD, 0.0, 0.5),
    "metal, 0.05": lambda: sg.Principled(GOLD, 1.0, 0.05),
    "metal, 0.2": lambda: sg.Principled(GOLD, 1.0, 0.2),
    "metal, 0.5": lambda: sg.Principled(GOLD, 1.0, 0.5),
    "metal, 0.9": lambda: sg.Principled(GOLD, 1.0, 0.9),
    "plastic, 0.3": lambda: sg.Principled(GOLD, 0.0, 0.3),
    "coated": lambda: sg.Principled(GOLD, 0.0, 0.5, clearcoat=1.0),
    "glass": lambda: sg.Principled([1.0] * 3, 0.0, 0.0, transmission=1.0),
    "rough glass": lambda: sg.Principled([1.0] * 3, 0.0, 0.3, transmission=1.0),
}


def scene_of(lamp: str, material: str) -> sg.Scene:
    """The scene of a lamp and a material."""
    shader = MATERIALS[material]()
    table = sg.Rectangle([0.0, 0.0, 0.0], [3.0, 3.0])
    things = {"ball": sg.Surface(sg.Sphere([-0.4, 0.0, 0.45], 0.45), shader)}
    if "glass" not in material:
        black = sg.Surface(sg.Sphere([0.6, -0.3, 0.6], 0.25), [0.0] * 3)
        things |= {"table": sg.Surface(table, shader), "black": black}
    return sg.Scene(sg.Group(lamp=LAMPS[lamp](), **things), background=[0.0] * 3)


VIEW = sg.PerspectiveCamera.look_at([0.3, -3.5, 1.8], [0.0, 0, 0.35], [0, 0, 1], 0.5, 48, 36)


@dataclasses.dataclass(frozen=True)
class Compared:
    """Two pictures of one scene; differences are parts of the mean radiance."""

    lamp: str
    material: str
    mean: float  # of the means
    absolute: float  # the mean of the pixels' differences
    noise: float  # of the mean by random paths


def compare(lamp: str, material: str, samples: int) -> Compared:
    """Draws a scene by closed forms and by random paths."""
    scene = scene_of(lamp, material)
    closed = np.asarray(sg.render(scene, VIEW).rgb)
    # As often as light is mirrored or bent in the closed forms.
    how = sg.Path(samples=samples, bounces=2, interreflection=False)
    key = jax.random.key(0)
    drawn = sg.render(scene, VIEW, how, key=key, outputs=["variance"])
    paths = np.asarray(drawn.rgb)
    noise = float(jnp.sqrt(jnp.sum(drawn.variance)) / drawn.rgb.size)
    mean = paths.mean()
    difference = closed - paths
    return Compared(
        lamp,
        material,
        float(difference.mean() / mean),
        float(np.abs(difference).mean() / mean),
        noise / float(mean),
    )


def main(
    samples: int = 1024,
    lamps: tuple[str, ...] = (),
    materials: tuple[str, ...] = (),
    out: pathlib.Path = pathlib.Path("docs/benchmarks/light.json"),
) -> None:
    """Compares closed forms and paths, lamp by lamp and material by material."""
    rows = []
    for lamp in lamps or LAMPS:
        for material in materials or MATERIALS:
            begin = time.perf_counter()
            row = compare(lamp, material, samples)
            rows.append(dataclasses.asdict(row))
            took = time.perf_counter() - begin
            print(
                f"{lamp:12} {material:13} mean {row.mean:+.2%} (noise {row.noise:.2%}) "
                f"pixels {row.absolute:.2%}  {took:.0f} s",
                flush=True,
            )
    report(out, {"samples": samples, "rows": rows})
