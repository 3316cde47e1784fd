"""Every float leaf at the knots of all it goes through, beside one-sided differences.

Knots are defaults, ends of ranges, multiples of levels, and poses along the axes of a picture. What
is held to be right there: a derivative between those of both sides, by any leaf and along any
direction, and second derivatives as differences of first ones.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph import fields, rays, shaders, shapes
from scenegraph.cameras import AbstractCamera
from scenegraph.fields import AbstractField
from scenegraph.filters import AbstractFilter
from scenegraph.flat import Glow
from scenegraph.interop import mujoco
from scenegraph.lights import AbstractLight
from scenegraph.shaders import AbstractShader
from scenegraph.shapes import AbstractShape
from support.contract_table import final_classes, GRID, KEYS, numbers
from support.knots import as_double, check_knots


pytestmark = pytest.mark.usefixtures("x64")
DRAW = np.random.default_rng(3)
EYE = np.eye(4)


def weighted(tree):
    """Sums all float numbers of a tree, each with a weight of its own."""
    leaves = [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    draw = np.random.default_rng(0)
    return sum(jnp.sum(x * draw.normal(size=x.shape)) for x in leaves)


# --- Shaders: lights head-on and at the horizon, eyes head-on and askew, uv on sides of cells

UP = np.array([0.0, 0.0, 1.0])
VIEWS = jnp.asarray([-UP, [0.6, 0.0, -0.8]], float)
PLACES = np.array([[0.0, 0.0], [0.5, 0.25], [1.0, 0.3]])


def hits():
    """Points with footprints along the axes of their patterns, for every place and view."""
    sides = 0.25 * np.eye(2)
    wide = np.pad(sides, ((0, 0), (0, 1)))
    hit = lambda uv: rays.Hit(1.0, np.append(uv, 0.0), UP, uv, sides, 1.0, d_point=wide)
    every = [hit(uv) for uv in PLACES for _ in VIEWS]
    return as_double(jax.tree.map(lambda *x: jnp.stack(x), *every))


def lit():
    light = rays.Irradiance(
        np.array([UP, [1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [0.6, 0.0, 0.8]]),
        DRAW.uniform(size=(4, 3)),
        DRAW.uniform(size=3),
        jnp.asarray(DRAW.uniform(size=(9, 3))),
        1,
    )
    return as_double(light)


TEXELS = numbers(4, 4, 3)
BUMPS = shaders.NormalMap([0.5, 0.5, 1.0], 1.0)
SHADERS = {
    "Constant": [shaders.Constant([0.0, 1.0, 0.5])],
    "Checker": [shaders.Checker(0.5), shaders.Checker(1.0), shaders.Checker(0.25)],
    "Stripes": [shaders.Stripes(0.5), shaders.Stripes(1.0)],
    "Gradient": [shaders.Gradient(), shaders.Gradient([0.5, 0.0], [1.0, 0.0])],
    "Noise": [shaders.Noise(0.5, octaves=2), shaders.Noise(1.0, octaves=2)],
    "Lambert": [shaders.Lambert([0.0, 1.0, 0.5])],
    "Glow": [Glow(jnp.asarray([0.0, 1.0, 0.5]), False)],
    "Headlit": [mujoco.Headlit([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])],
    "Phong": [shaders.Phong(), shaders.Phong([0.5] * 3, [0.0] * 3, 1.0)],
    "GGX": [
        *(shaders.GGX(roughness=i / 8) for i in range(9)),
        *(shaders.GGX([0.0, 1.0, 0.5], m, r) for m in (0.0, 1.0) for r in (0.0, 0.5, 1.0)),
    ],
    "GGX with bumps": [shaders.GGX(normal_map=BUMPS, emission=[0.0] * 3, occlusion=1.0)],
    "Principled": [
        *(shaders.Principled(roughness=i / 10) for i in range(11)),
        *(shaders.Principled([0.0, 1.0, 0.5], m, r) for m in (0.0, 1.0) for r in (0.0, 0.5)),
    ],
    "Principled with all layers": [
        shaders.Principled(
            roughness=r,
            ior=n,
            transmission=x,
            clearcoat=x,
            clearcoat_roughness=r / 2,
            sheen_color=[x, 0.5, 0.0],
            sheen_roughness=0.7 * r,
            specular=x,
            specular_color=[1.0, 0.5, 0.0],
        )
        for r, n, x in ((0.0, 1.5, 1.0), (0.2, 1.0, 0.0), (0.8, 2.0, 0.5), (0.5, 1.33, 1.0))
    ],
    "ImageTexture": [shaders.ImageTexture(TEXELS, [1.0, 1.1], [0.1, 0.05])],
    "Normals": [shaders.Normals()],
    "UV": [shaders.UV()],
    "VertexColor": [shaders.VertexColor()],
    "ViewDependent": [shaders.ViewDependent([0.2, 0.5, 0.9], numbers(2, 3, 9, 3))],
}
# Both ends of a range: differences beyond them are those of numbers that no shader may have.


@pytest.mark.parametrize("name", SHADERS)
def test_shaders(name):
    hit, lights = hits(), lit()
    views = jnp.tile(VIEWS, (len(PLACES), 1))

    def seen(shader):
        shader = shader.prepare() if name == "ImageTexture" else shader
        return weighted(jax.vmap(lambda hit, view: shader(hit, view, lights))(hit, views))

    some = [x for x in SHADERS[name] if jax.tree.leaves(eqx.filter(x, eqx.is_inexact_array))]
    if some:
        check_knots(seen, some)


# --- Lights

LIGHTS = {
    "AmbientLight": [sg.AmbientLight()],
    "DirectionalLight": [sg.DirectionalLight([0.0, 0.0, -1.0], [1.0] * 3)],
    "PointLight": [sg.PointLight([0.0, 0.0, 1.0], [1.0] * 3)],
    # The points are on the axis, and at the inner and the outer angle of the soft edge.
    "SpotLight": [
        sg.SpotLight([0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0] * 3, np.pi / 4, 0.5),
        sg.SpotLight([0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0] * 3, np.pi / 4, 1.0),
    ],
    "EnvironmentLight": [sg.EnvironmentLight(numbers(4, 8, 3), 5)],
    # Points are below the middle, an edge, and a corner.
    "RectangleLight": [sg.RectangleLight([0.0, 0, 1], [1.0, 0, 0], [0, 0.3, 0], [1.0] * 3)],
    "DiskLight": [sg.DiskLight([0.0, 0, 1], [0.0, 0, 1], 1.0, [1.0] * 3)],
    "SphereLight": [sg.SphereLight([0.0, 0, 1], 0.5, [1.0] * 3)],
    "MeshLight": [sg.MeshLight([[0.0, 0, 1], [1, 0, 1], [0, 1, 1]], [[0, 1, 2]], [1.0] * 3)],
}


@pytest.mark.parametrize("name", LIGHTS)
def test_lights(name):
    points = jnp.asarray([[0.0, 0, 0], [1.0, 0, 0], [np.tan(np.pi / 8), 0, 0], [0, 0.3, 0.1]])
    sides = 0.1 * jnp.eye(3)[:2]
    check_knots(
        lambda light: weighted(jax.vmap(lambda p: light.sample(p, sides))(points)), LIGHTS[name]
    )


# --- Filters: pictures of zeros and ones

FILTERS = {
    "Invert": [sg.Invert()],
    "Exposure": [sg.Exposure(0.0)],
    "Gamma": [sg.Gamma(1.0), sg.Gamma(0.5), sg.Gamma(2.0)],
    "AcesToneMap": [sg.AcesToneMap()],
    "AgxToneMap": [sg.AgxToneMap()],
    "ToneMap": [sg.ToneMap(), sg.ToneMap(1.0)],
    "Vignette": [sg.Vignette(), sg.Vignette(0.0), sg.Vignette(1.0)],
    "Blur": [sg.Blur(), sg.Blur(0.5)],
    "Chain": [sg.Chain((sg.Exposure(0.0), sg.Gamma(1.0)))],
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name):
    rgb = np.stack([np.zeros((3, 3)), np.ones((3, 3)), DRAW.uniform(size=(3, 3))])
    rgb = jnp.asarray(rgb)
    picture = sg.Image(rgb, rgb[..., 0], rgb[..., 1], space=sg.images.Linear())
    some = [x for x in FILTERS[name] if jax.tree.leaves(eqx.filter(x, eqx.is_inexact_array))]
    if some:
        check_knots(lambda filter: weighted(filter(picture).rgb), some)


@pytest.mark.parametrize("name", FILTERS)
def test_filters_by_the_picture(name):
    """Numbers where the sRGB curve is linear, where it is not, and one."""
    rgb = np.stack([np.full((3, 3), 1e-3), np.ones((3, 3)), DRAW.uniform(0.1, 1, size=(3, 3))])

    def seen(rgb):
        return weighted(FILTERS[name][0](sg.Image(rgb, rgb[..., 0], rgb[..., 1])).rgb)

    check_knots(seen, [jnp.asarray(rgb)])


# --- Losses: pictures that are flat, and equal to their target

CHECKS = (np.indices((12, 12)).sum(0) % 2)[..., None] * np.ones(3)
NOISE = DRAW.normal(size=(12, 12, 3))
SQUARE = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
FACES = jnp.array([[0, 1, 2], [0, 2, 3]])
FOLDS = sg.losses.mesh_edges(FACES)


def ssim(image, target):
    return sg.losses.ssim(jnp.asarray(image), jnp.asarray(target))


LEVELS = rays.Radiance(numbers(4, 3), *numbers(2, 4), numbers(4, 4), numbers(4, 5))
LOSSES = {
    "ssim of a flat picture": lambda x: ssim(0.4 + x[0] * NOISE, CHECKS),
    "ssim of two flat pictures": lambda x: ssim(0.4 + x[0] * NOISE, 0.4 + 0 * CHECKS),
    "ssim of equal pictures": lambda x: ssim(CHECKS + x[0] * NOISE, CHECKS),
    "laplacian": lambda x: sg.losses.laplacian_roughness(SQUARE + x[0] * NOISE[0, :4], FOLDS),
    "normals": lambda x: sg.losses.normal_roughness(SQUARE + x[0] * NOISE[0, :4], FACES, FOLDS),
    "edges": lambda x: sg.losses.edge_length_spread(SQUARE + x[0] * NOISE[0, :4], FOLDS),
    "MultiLevelLoss": lambda x: weighted(
        sg.losses.MultiLevelLoss().ray(
            (jax.tree.map(lambda y: y[0] * (1 + x[0]), as_double(LEVELS)),), LEVELS.rgb[0]
        )
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    check_knots(LOSSES[name], [jnp.zeros(1)], second=not name.startswith("ssim"))


# --- Shapes in pixels whose sides lie on their edges, along their axes

CARD = shapes.TriangleMesh(SQUARE, [[0, 1, 2], [0, 2, 3]], smooth=False)
BALL = np.linalg.norm(np.mgrid[-1:1:5j, -1:1:5j, -1:1:5j], axis=0) - 0.7
SHAPES = {
    "Box": [shapes.Box([-1.0] * 3, [1.0] * 3), shapes.Box([-0.5, -1, -1], [1.0, 0.25, 1])],
    "Capsule": [shapes.Capsule(), shapes.Capsule([-0.5, 0, 0], [0.5, 0, 0], 0.5)],
    "Cylinder": [shapes.Cylinder()],
    "Disk": [shapes.Disk()],
    "Ellipsoid": [shapes.Ellipsoid(), shapes.Ellipsoid([0.0] * 3, [0.5, 1.0, 1.5])],
    "HeightField": [
        shapes.HeightField([[0.1, 0.2, 0.1], [0.0, 0.3, 0.2]], [2.0, 1.0], base=-0.5),
        shapes.HeightField([[0.0] * 3] * 2, [1.0, 2.0], base=-0.5),
    ],
    "Plane": [shapes.Plane()],
    "Rectangle": [shapes.Rectangle([0.0] * 3, [2.0, 2.0]), shapes.Rectangle()],
    "Sphere": [shapes.Sphere()],
    "TriangleMesh": [CARD],
    # A thousandth beside the faces of the grid's cells: on them, derivatives are those of one side.
    "SignedDistance": [
        shapes.SignedDistance.from_grid(BALL, [-1.003, -0.998, -1.0], [1.001, 1.002, 1.0], steps=16)
    ],
}
PARALLEL = sg.OrthographicCamera.look_at([0, 0, 4], [0, 0, 0], [0, 1, 0], 4.0, 8, 8)
SMALL = 6


def pictured(camera, count):
    """The rays of the pixels in the middle of a picture."""
    at = np.arange(count) + 0.5 + (camera.width - count) / 2
    pixels = jnp.asarray(np.stack(np.meshgrid(at, at), -1).reshape(-1, 2))
    return jax.jit(jax.vmap(as_double(camera).ray))(pixels)


SLOW = {"SignedDistance": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(x, marks=SLOW.get(x, ())) for x in SHAPES])
def test_shapes(name):
    """What they cover of pixels and of shadow cones; a flat shape is turned about its middle."""
    seen = pictured(PARALLEL, SMALL)

    def covered(shape):
        one = lambda ray: (jnp.sum(shape.parts(ray).coverage), shape.coverage(ray))
        return weighted(jax.vmap(one)(seen))

    # A circle that touches a side of a pixel covers the pixel beyond by the power 3/2 of a move:
    # differences over a step are off by the root of the step.
    slack = 4e-3 if name in ("Disk", "Sphere", "Ellipsoid", "Cylinder") else 1e-3
    check_knots(covered, SHAPES[name], second=name != "SignedDistance", slack=slack)


@pytest.mark.parametrize("name", ["Box", "Cylinder", "Rectangle", "TriangleMesh"])
def test_shapes_turned_and_moved(name):
    """By a pose along the axes of the pixels."""
    shape, seen = as_double(SHAPES[name][0]), pictured(PARALLEL, SMALL)

    def covered(tangent):
        pose = sg.Pose(EYE, tangent).inverse()

        def one(ray):
            move = lambda x: jax.vmap(pose.direction)(x)
            moved = rays.Ray(
                pose.point(ray.origin),
                pose.direction(ray.direction),
                ray.view,
                move(ray.d_origin),
                move(ray.d_direction),
                ray.near,
                ray.far,
            )
            return shape.coverage(moved)

        return weighted(jax.vmap(one)(seen))

    # Shifts, and the turn about the view.
    some = np.eye(6)[[0, 1, 2, 5]]
    check_knots(lambda x: covered(x @ some), [jnp.zeros(4)], second=False)


# --- Cameras: lenses without distortion, a pose along the axes, the pixel in the middle

LENS = {"width": 4, "height": 4, "near": 1.0, "far": 6.0}
FRONT = sg.PerspectiveCamera(EYE, 4.0, **LENS)
CAMERAS = {
    "PerspectiveCamera": FRONT,
    "OrthographicCamera": sg.OrthographicCamera(EYE, 2.0, **LENS),
    "OpenCVCamera": sg.OpenCVCamera(EYE, 4.0, **LENS),
    "FisheyeCamera": sg.FisheyeCamera(EYE, 4.0, **LENS),
    "PanoramaCamera": sg.PanoramaCamera(EYE, **LENS),
    "RollingShutter": sg.RollingShutter(FRONT, np.zeros(6)),
    "MovedCamera": sg.cameras.MovedCamera(sg.transforms.Similarity(), FRONT),
    "NDCCamera": sg.cameras.NDCCamera(FRONT, [2.0, 2.0]),
}


@pytest.mark.parametrize("name", CAMERAS)
def test_cameras(name):
    pixels = jnp.asarray([[2.0, 2.0], [0.5, 2.0], [3.5, 0.5]])
    check_knots(lambda camera: weighted(jax.vmap(camera.ray)(pixels)), [CAMERAS[name]])


# --- Fields at the points of their lattices

FIELDS = {
    "MipNerfMLP": [
        fields.MipNerfMLP(
            4, 1, view_width=4, encoding=sg.encodings.IntegratedPositional(0, 2), key=KEYS[0]
        )
    ],
    "NerfMLP": [fields.NerfMLP(4, 1, view_width=4, degree=1, key=KEYS[2])],
    "ConstantFog": [fields.ConstantFog(0.0, [0.0, 0.5, 1.0])],
    "GaussianBlob": [fields.GaussianBlob([0.0] * 3, 0.5, 1.0, [0.0, 0.5, 1.0])],
    "GridField": [fields.GridField(GRID, 4, 2, view_degree=1, key=KEYS[0])],
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name):
    points = jnp.asarray([[0.0, 0, 0], [0.5, 0.5, -0.5], [1.0, 1.0, 1.0], [-0.3, 0.2, 0.7]])
    spread = 1e-2 * jnp.eye(3)

    def seen(field):
        one = lambda p: field(rays.FullGaussian(p, jnp.asarray(UP), spread), jnp.asarray(UP))
        return weighted(jax.vmap(one)(points))

    check_knots(seen, FIELDS[name])


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (AbstractShader, SHADERS),
        (AbstractLight, LIGHTS),
        (AbstractFilter, FILTERS),
        (AbstractShape, SHAPES),
        (AbstractCamera, CAMERAS),
        (AbstractField, FIELDS),
    ],
)
def test_every_class_has_a_row(kind, rows):
    """New classes are tried at their knots, too."""
    prepared = {"PreparedEnvironment", "PreparedTexture", "ScaledCamera"}
    missing = {x.__name__ for x in final_classes(kind)} - set(rows) - prepared
    assert not missing
