"""The scenes of the benchmark of random paths, for this library and for Mitsuba 3.

Either is imported where it is needed, so that the process of one does not hold the other.
"""

import math
from typing import Any

import numpy as np


NAMES = "cornell", "metal", "lamps", "sky", "mesh"
BOUNCES, FOV = 4, 0.7
WHITE, RED, GREEN = [0.7, 0.7, 0.7], [0.6, 0.06, 0.06], [0.1, 0.5, 0.1]
# Centre and half edges of the Cornell box' walls, with their colours; normals look inside.
WALLS = [
    ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], WHITE),
    ([0.0, 0.0, 2.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], WHITE),
    ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], WHITE),
    ([-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], RED),
    ([1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], GREEN),
]
PANEL = [0.0, 0.0, 1.98], [0.0, 0.3, 0.0], [0.3, 0.0, 0.0], [12.0, 10.0, 8.0]
FLOOR = [0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.5, 0.5, 0.5]
# Centre, radius and roughness of balls of white metal.
METAL = [([-1.1, 0.0, 0.5], 0.5, 0.2), ([0.0, 0.0, 0.5], 0.5, 0.35), ([1.1, 0.0, 0.5], 0.5, 0.5)]
GLASS, IOR = ([-0.55, -0.9, 0.4], 0.4), 1.5
BULB = [0.0, -1.5, 3.0], 0.5, [20.0, 18.0, 15.0]


def view(name: str) -> tuple[list[float], list[float]]:
    """Eye and target of the camera."""
    if name == "cornell":
        return [0.0, -3.6, 1.0], [0.0, 0.0, 1.0]
    return [0.0, -5.0, 2.5], [0.0, 0.0, 0.4]


def lamps() -> list[tuple[list[float], float, list[float]]]:
    """Centre, radius and radiance of many lamps."""
    generator = np.random.default_rng(1)
    places = generator.uniform([-2, -2, 0.8], [2, 2, 2.0], size=(32, 3))
    colors = generator.uniform(1, 12, size=(32, 3))
    return [(list(p), 0.06, list(c)) for p, c in zip(places.tolist(), colors.tolist(), strict=True)]


def sky(right: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Smooth light from all around, by places from 0 to 1."""
    azimuth, up = 2 * math.pi * (right - 0.5), np.cos(math.pi * down)
    level = np.sin(math.pi * down)
    sun = np.exp(12 * (level * np.cos(azimuth - 1.0) * 0.8 + up * 0.6 - 1))
    around = 0.3 + 0.2 * np.cos(azimuth) * level + 0.2 * up
    return np.stack([around + 8 * sun, around + 6 * sun, 1.2 * around + 4 * sun], axis=-1)


def bumpy(rows: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, faces and texture coordinates of a ball with bumps."""
    columns = 2 * rows
    v, u = np.meshgrid(np.arange(rows + 1) / rows, np.arange(columns + 1) / columns, indexing="ij")
    angle, around = math.pi * (0.001 + 0.998 * v), 2 * math.pi * u
    radius = 1 + 0.08 * np.sin(6 * around) * np.sin(5 * angle) * np.sin(angle) ** 2
    ring = radius * np.sin(angle)
    points = np.stack([ring * np.cos(around), ring * np.sin(around), radius * np.cos(angle)], -1)
    k = np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)
    a, b, c, d = k, k + columns + 1, k + columns + 2, k + 1
    faces = np.concatenate([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]).reshape(-1, 3)
    return points.reshape(-1, 3) + [0, 0, 1.1], faces, np.stack([u, v], -1).reshape(-1, 2)


def texture() -> np.ndarray:
    """Random colours of squares."""
    return np.kron(
        np.random.default_rng(2).uniform(0.1, 0.9, size=(8, 16, 3)), np.ones((16, 16, 1))
    )


def ours(name: str, size: int) -> tuple[Any, Any]:
    """A scene and its camera."""
    import scenegraph as sg

    def rectangle(center, u, v, color):
        normal = np.cross(u, v) / np.linalg.norm(np.cross(u, v))
        place = sg.Affine(np.stack([u, v, normal], axis=1), center)
        shape = sg.Rectangle(size=[2.0, 2.0])
        return sg.Transformed(sg.Surface(shape, sg.Lambert(color)), place)

    metal = lambda roughness: sg.GGX([1.0, 1.0, 1.0], metallic=1.0, roughness=roughness)
    things: dict[str, Any] = {}
    if name == "cornell":
        things |= {f"wall{i}": rectangle(*wall) for i, wall in enumerate(WALLS)}
        things["left"] = sg.Surface(sg.Sphere([-0.4, 0.3, 0.4], 0.4), sg.Lambert(WHITE))
        box = sg.Box([0.1, -0.6, 0.0], [0.7, 0.0, 0.9])
        things["right"] = sg.Surface(box, sg.Lambert(WHITE))
        things["lamp"] = sg.RectangleLight(*PANEL, two_sided=False)
    else:
        things["floor"] = rectangle(*FLOOR)
    if name in ("metal", "sky", "lamps"):
        for i, (center, radius, roughness) in enumerate(METAL):
            things[f"ball{i}"] = sg.Surface(sg.Sphere(center, radius), metal(roughness))
    if name == "metal":
        glass = sg.Principled([1.0, 1.0, 1.0], roughness=0.0, transmission=1.0, ior=IOR)
        things["glass"] = sg.Surface(sg.Sphere(*GLASS), glass)
    if name in ("metal", "mesh"):
        things["lamp"] = sg.SphereLight(*BULB)
    if name == "lamps":
        things |= {f"lamp{i}": sg.SphereLight(*lamp) for i, lamp in enumerate(lamps())}
    if name == "sky":
        down, right = (np.arange(64) + 0.5) / 64, (np.arange(128) + 0.5) / 128
        things["sky"] = sg.EnvironmentLight(sky(*np.meshgrid(right, down)), samples=16)
    if name == "mesh":
        points, faces, uv = bumpy()
        shape = sg.TriangleMesh(points, faces, uv=uv, smooth=False)
        colors = sg.shaders.ImageTexture(texture(), corner=[0.0, 0.0])
        things["mesh"] = sg.Surface(shape, sg.Lambert(colors))
    eye, target = view(name)
    camera = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], FOV, size, size)
    background = things["sky"] if name == "sky" else [0.0, 0.0, 0.0]
    return sg.Scene(sg.Group(**things), background=background), camera


def theirs(mi: Any, name: str, size: int) -> Any:
    """The same scene for Mitsuba."""
    transform = mi.ScalarTransform4f
    rgb = lambda values: {"type": "rgb", "value": values}
    diffuse = lambda color: {"type": "diffuse", "reflectance": rgb(color)}
    shines = lambda radiance: {"type": "area", "radiance": rgb(radiance)}
    black = diffuse([0.0, 0.0, 0.0])

    def rectangle(center, u, v, color, **more):
        matrix = np.eye(4)
        normal = np.cross(u, v) / np.linalg.norm(np.cross(u, v))
        matrix[:3, :3], matrix[:3, 3] = np.stack([u, v, normal], axis=1), center
        bsdf = black if more else diffuse(color)
        return {"type": "rectangle", "to_world": transform(matrix), "bsdf": bsdf, **more}

    sphere = lambda center, radius, **more: {
        "type": "sphere",
        "center": center,
        "radius": radius,
        **more,
    }
    metal = lambda roughness: {
        "type": "roughconductor",
        "material": "none",
        "distribution": "ggx",
        "alpha": roughness**2,
    }
    eye, target = view(name)
    things: dict[str, Any] = {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": BOUNCES + 2, "rr_depth": 1000},
        "sensor": {
            "type": "perspective",
            "fov": math.degrees(FOV),
            "fov_axis": "x",
            "near_clip": 0.01,
            "far_clip": 1000.0,
            "to_world": transform().look_at(origin=eye, target=target, up=[0, 0, 1]),
            "film": {
                "type": "hdrfilm",
                "width": size,
                "height": size,
                "pixel_format": "rgb",
                "component_format": "float32",
                "rfilter": {"type": "box"},
            },
            "sampler": {"type": "independent"},
        },
    }
    if name == "cornell":
        things |= {f"wall{i}": rectangle(*wall) for i, wall in enumerate(WALLS)}
        things["left"] = sphere([-0.4, 0.3, 0.4], 0.4, bsdf=diffuse(WHITE))
        place = transform().translate([0.4, -0.3, 0.45]).scale([0.3, 0.3, 0.45])
        things["right"] = {"type": "cube", "to_world": place, "bsdf": diffuse(WHITE)}
        things["lamp"] = rectangle(*PANEL[:3], None, emitter=shines(PANEL[3]))
    else:
        things["floor"] = rectangle(*FLOOR)
    if name in ("metal", "sky", "lamps"):
        for i, (center, radius, roughness) in enumerate(METAL):
            things[f"ball{i}"] = sphere(center, radius, bsdf=metal(roughness))
    if name == "metal":
        glass = {"type": "dielectric", "int_ior": IOR, "ext_ior": 1.0}
        things["glass"] = sphere(*GLASS, bsdf=glass)
    if name in ("metal", "mesh"):
        things["lamp"] = sphere(*BULB[:2], emitter=shines(BULB[2]), bsdf=black)
    if name == "lamps":
        for i, (center, radius, radiance) in enumerate(lamps()):
            things[f"lamp{i}"] = sphere(center, radius, emitter=shines(radiance), bsdf=black)
    if name == "sky":
        # Its rows and columns are at the corners of ours, and the other way round.
        down, right = np.arange(64) / 63, np.arange(128) / 128
        pixels = sky(*np.meshgrid(1 - right, down)).astype(np.float32)
        matrix = np.eye(4)
        matrix[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
        bitmap = mi.Bitmap(pixels)
        things["sky"] = {"type": "envmap", "bitmap": bitmap, "to_world": transform(matrix)}
    if name == "mesh":
        points, faces, uv = bumpy()
        look = {"type": "bitmap", "bitmap": mi.Bitmap(texture().astype(np.float32)), "raw": True}
        properties = mi.Properties()
        properties["bsdf"] = mi.load_dict({"type": "diffuse", "reflectance": look})
        count = len(points)
        mesh = mi.Mesh(
            "ball",
            count,
            len(faces),
            has_vertex_normals=False,
            has_vertex_texcoords=True,
            props=properties,
        )
        parameters = mi.traverse(mesh)
        parameters["vertex_positions"] = points.astype(np.float32).ravel()
        parameters["faces"] = faces.astype(np.uint32).ravel()
        # Its pictures begin at the bottom.
        parameters["vertex_texcoords"] = (uv * [1, -1] + [0, 1]).astype(np.float32).ravel()
        parameters.update()
        things["mesh"] = mesh
    return mi.load_dict(things)
