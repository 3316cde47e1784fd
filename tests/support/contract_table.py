"""An instance of every final class of the library, and for every abstract class how to ask it.

A new class is a new row; `contracts/` then checks it, and saves and loads it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph import (
    cameras,
    data,
    encodings,
    fields,
    flat,
    images,
    integrators,
    lights,
    losses,
    pixels,
    rays,
    samplers,
    scene,
    shaders,
    shapes,
    solving,
    transforms,
    visibility,
)
from scenegraph.integrators._base import MediaAlong
from scenegraph.integrators._occupancy_march import March
from scenegraph.integrators._packed import PackedSteps
from scenegraph.integrators._per_volume import PerVolume
from scenegraph.interop import mujoco
from scenegraph.numerics import AbstractModule, Frozen, Tied
from scenegraph.scene import PerCopy
from support.architecture_classes import find_modules


@dataclasses.dataclass
class Contract:
    """Instances of one abstract class; `call(instance, *inputs)`; inputs with a leading axis."""

    instances: list[Any]
    call: Callable
    inputs: tuple = ()


def numbers(*shape, seed=0) -> jax.Array:
    """Between 0 and 1."""
    return jnp.asarray(np.random.default_rng(seed).uniform(size=shape).astype(np.float32))


def scene_for(integrator):
    """A scene of all that an integrator serves."""
    whole = flat.flatten(FOGGY)
    return whole.without_media() if isinstance(integrator, sg.Path) else whole


@eqx.filter_jit
def prepared(node):
    return node.prepare()


@jax.jit
def stack(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


# --- Three of everything that is asked for

KEYS = jax.random.split(jax.random.key(0), 3)
AXES = [[0.0, -4.0, 0.3], [0.1, 0.0, 0.0], [0.0, 0.0, 1.0]]
POSE = transforms.Pose.look_at(*AXES)
PERSPECTIVE = sg.PerspectiveCamera.look_at(*AXES, 0.7, 3, 2, near=1.0, far=6.0)
ORTHOGRAPHIC = sg.OrthographicCamera.look_at(*AXES, 2.0, 3, 2, near=1.0, far=6.0)
FORWARD = sg.PerspectiveCamera(transforms.Pose(jnp.eye(4)), 4.0, 3, 2)
NDC = cameras.NDCCamera(FORWARD, [8 / 3, 8 / 2])
LENSES = [
    sg.OpenCVCamera(POSE, [4.0, 5.0], 3, 2, near=1.0, far=6.0, k1=0.1, p1=0.01, k4=-0.02),
    sg.FisheyeCamera(POSE, [2.0, 2.5], 3, 2, near=1.0, far=6.0, k1=0.1, k2=-0.02),
    sg.PanoramaCamera(POSE, 3, 2, near=1.0, far=6.0),
]
PIXELS = jnp.array([[0.5, 0.5], [1.7, 0.2], [2.5, 1.5]])
RAYS = jax.jit(jax.vmap(PERSPECTIVE.ray))(PIXELS)
NEAR, FAR = jnp.array([3.5, 3.6, 3.7]), jnp.array([4.5, 4.4, 4.3])
GAUSSIANS = jax.jit(jax.vmap(rays.ConeBeam()))(RAYS, NEAR, FAR)
SECTIONS = rays.Section(GAUSSIANS, NEAR, FAR)
HITS = rays.Hit(NEAR, numbers(3, 3), RAYS.view, numbers(3, 2), numbers(3, 2, 2), jnp.ones(3))
RADIANCE = rays.Radiance(numbers(3, 2, 3), *numbers(2, 3, 2), numbers(3, 2, 4), numbers(3, 2, 5))
TARGETS, COUNTS = numbers(3, 2, 3, seed=1), numbers(3, 2, seed=2)
PICTURES = numbers(3, 2, 4, 3)


# --- Instances

NET = fields.MipNerfMLP(
    8, 2, view_width=8, encoding=encodings.IntegratedPositional(0, 4), key=KEYS[0]
)
GRID = encodings.Grid((2, 5), 2, 64, key=KEYS[1])
FIELDS = [
    NET,
    fields.NerfMLP(8, 2, view_width=8, degree=3, key=KEYS[2]),
    fields.ConstantFog(0.7, [0.1, 0.5, 0.9]),
    fields.GaussianBlob([0.2, 0.0, 0.1], 0.5, 2.0, [0.9, 0.2, 0.1]),
    fields.GridField(GRID, 8, 3, view_degree=3, key=KEYS[0]),
]
BOX = shapes.Box([-0.5, -0.6, -0.7], [0.5, 0.6, 0.8])
SIMILARITY = transforms.Similarity([0.1, 0.2, 0.3], [0.9, 0.1, -0.2, 0.3], 1.5)
TRANSFORMS = [
    transforms.Affine([[1.5, 0.3, 0.0], [0.0, 0.5, 0.2], [-0.1, 0.0, 0.8]], [0.1, 0.2, -0.2]),
    transforms.Pose(POSE.base, [0.1, -0.2, 0.3, 0.4, 0.5, -0.6]),
    SIMILARITY,
    transforms.Inverse(SIMILARITY),
    transforms.Composed(transforms.Inverse(SIMILARITY), POSE),
    transforms.AffineMap(0.5 * jnp.eye(3), jnp.ones(3), True),
    *(
        frame([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [0.1, 0.2, 0.3], 2)
        for frame in (mujoco.GeomFrame, mujoco.SiteFrame, mujoco.CameraFrame)
    ),
    mujoco.LightFrame(
        *([0.1, 0.2, -1.0], [1.0, 2.0, 3.0], 1, 2, 0, [0.0, 0.1, 0.2], [0.0, 0.0, -1.0]),
        offsets=[[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.0, 0.0, -1.0]],
    ),
]
OCCUPANCY = scene.Occupancy(numbers(2, 3, 4), 0.4)
VOLUMES = [
    scene.Volume(FIELDS[0], BOX),
    scene.Volume(FIELDS[2], None),
    scene.Volume(FIELDS[3], BOX, occupancy=OCCUPANCY),
    scene.Volume(FIELDS[3], None, contraction=encodings.Contraction()),
]
NODES = [
    *VOLUMES,
    scene.Transformed(VOLUMES[0], TRANSFORMS[0]),
    scene.Instances(VOLUMES[0], [TRANSFORMS[0], TRANSFORMS[0]]),
    scene.Surface(shapes.Sphere([0.1, 0.0, 0.2], 0.8), shaders.Checker(0.3), 0.9),
    scene.Group(net=VOLUMES[0], deep=scene.Group(fog=VOLUMES[1]), cam=PERSPECTIVE),
    scene.Capture(
        pixels.stack_cameras([PERSPECTIVE, PERSPECTIVE]),
        *(numbers(2, 6), numbers(3), numbers(2, 3, 4)),
        pose_scales=numbers(2, 6, 6),
        lens_scale=numbers(3, 3),
    ),
]
SCENE = scene.Scene(NODES[-2], background=[0.1, 0.2, 0.3], integrator=sg.Hierarchical((4, 5)))
VIEWS = data.Views(
    jnp.arange(36, dtype=jnp.uint8).reshape(12, 3) * jnp.uint8(7),
    pixels.stack_cameras([PERSPECTIVE, PERSPECTIVE]),
    jnp.array([3, 3]),
    jnp.array([2, 2]),
    jnp.ones(2),
    names=("a", "b"),
)


FILTERS = [
    sg.Invert(),
    sg.Exposure(0.5),
    sg.Gamma(1.5),
    sg.ToneMap(2.0),
    sg.AcesToneMap(),
    sg.AgxToneMap(),
    sg.Vignette(0.4),
    sg.Blur(0.7),
    sg.Chain((sg.Invert(), sg.Gamma(0.5))),
]


BALL = np.linalg.norm(np.mgrid[-1:1:5j, -1:1:5j, -1:1:5j], axis=0) - 0.7
TETRAHEDRON = (
    [[0.1, 0.0, 1.0], [0.9, 0.1, -0.4], [-0.5, 0.8, -0.5], [-0.4, -0.7, -0.3]],
    [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]],
)
SHAPES = [
    BOX,
    shapes.Capsule([-0.2, 0.0, 0.1], [0.3, 0.1, 0.4], 0.4),
    shapes.Cylinder([0.1, 0.0, 0.2], 0.6, 1.2),
    shapes.Disk([0.1, 0.2, -0.1], 1.2),
    shapes.Plane([0.0, 0.1, -0.5], [0.1, 0.2, 1.0]),
    shapes.Rectangle([0.1, 0.2, -0.1], [2.0, 2.4]),
    shapes.Sphere([0.1, 0.0, 0.2], 0.8),
    shapes.Ellipsoid([0.1, 0.0, 0.2], [0.8, 0.5, 0.6]),
    shapes.HeightField(numbers(3, 2), [2.0, 1.6], [0.1, 0.0, -0.2], -0.3),
    shapes.TriangleMesh(*TETRAHEDRON, colors=numbers(4, 3), uv=numbers(4, 2)),
    shapes.SignedDistance.from_grid(BALL, [-1.0] * 3, [1.0] * 3, steps=16),
]
FACE = eqx.filter_jit(lambda mesh: jax.tree.map(lambda x: x[0], mesh.triangles()))(SHAPES[-2])
GREY = shaders.Checker(0.3, [0.2] * 3, [0.8] * 3)
BUMPS = shaders.NormalMap([0.6, 0.5, 0.9], 0.7)
SHADERS = [
    shaders.Constant([0.2, 0.3, 0.4]),
    shaders.Checker(0.3, [0.9, 0.1, 0.2], [0.1, 0.8, 0.3]),
    shaders.Checker(0.3, coordinates=shaders.InSpace()),
    shaders.Lambert([0.5, 0.6, 0.7]),
    flat.Glow(jnp.asarray([0.2, 0.3, 0.4]), False),
    shaders.Stripes(0.3, [0.9, 0.1, 0.2], [0.1, 0.8, 0.3], 0.4),
    shaders.Gradient([0.1, 0.2, 0.3], [0.6, 0.9, 0.4], coordinates=shaders.InSpace()),
    shaders.ImageTexture(PICTURES[0], [0.7, 0.9], [0.1, 0.0], repeat=True),
    prepared(shaders.ImageTexture(PICTURES[0], repeat=(True, False), mirror=True, probes=1)),
    shaders.Noise(0.3, octaves=2, seed=5),
    shaders.Normals(),
    mujoco.Headlit([0.5, 0.6, 0.7], [0.3, 0.4, 0.5]),
    shaders.UV(),
    shaders.VertexColor([0.2, 0.5, 0.9]),
    shaders.ViewDependent([0.2, 0.5, 0.9], numbers(2, 3, 9, 3)),
    shaders.Phong([0.5, 0.6, 0.7], shaders.Checker(0.3), 7.0),
    shaders.GGX([0.5, 0.6, 0.7], 0.3, 0.4),
    shaders.GGX([0.5, 0.6, 0.7], GREY, GREY, BUMPS, [0.1, 0.2, 0.3], 0.5),
    shaders.Principled([0.5, 0.6, 0.7], 0.3, 0.4),
    shaders.Principled(
        *([0.5, 0.6, 0.7], GREY, GREY, BUMPS, [0.1, 0.2, 0.3], 0.5),
        emission_strength=2.0,
        ior=1.4,
        specular=0.8,
        specular_color=[0.9, 0.8, 0.7],
        transmission=0.6,
        attenuation_color=[0.8, 0.9, 0.7],
        attenuation_distance=2.0,
        clearcoat=0.7,
        clearcoat_roughness=0.2,
        sheen_color=[0.3, 0.2, 0.1],
        sheen_roughness=0.4,
    ),
]
LIGHTS = [
    sg.AmbientLight([0.1, 0.2, 0.3]),
    sg.DirectionalLight([0.1, 0.2, -1.0], [1.0, 0.9, 0.8]),
    sg.PointLight([1.0, -2.0, 3.0], [10.0, 9.0, 8.0]),
    sg.EnvironmentLight(numbers(4, 8, 3), 5),
    prepared(sg.EnvironmentLight(numbers(4, 8, 3), 5)),
    sg.SpotLight([1.0, -2.0, 3.0], [-0.3, 0.7, -1.0], [10.0, 9.0, 8.0], 0.6, 0.3),
    sg.RectangleLight([1.0, -2.0, 3.0], [0.5, 0.1, 0.0], [0.1, -0.4, 0.2], [10.0, 9.0, 8.0]),
    sg.DiskLight([1.0, -2.0, 3.0], [0.3, 0.1, -1.0], 0.5, [10.0, 9.0, 8.0], False, 2),
    sg.SphereLight([1.0, -2.0, 3.0], 0.4, [10.0, 9.0, 8.0]),
    sg.MeshLight(
        [[1.0, -2.0, 3.0], [1.5, -2.0, 3.0], [1.0, -1.4, 3.1], [1.6, -1.0, 2.9]],
        [[0, 1, 2], [2, 1, 3]],
        [10.0, 9.0, 8.0],
    ),
]
SIZED = [light for light in LIGHTS if isinstance(light, lights.AbstractSizedLight)]
LIT = rays.Irradiance(
    jnp.ones((3, 2, 3)) / np.sqrt(3), numbers(3, 2, 3, seed=4), numbers(3, 3, seed=5)
)
LAYERS = rays.Layers(numbers(3, 2), numbers(3, 2), numbers(3, 2, 3), jnp.zeros(3, int))
SURFACE = scene.Surface(SHAPES[6], SHADERS[1], 0.9)
FOGGY = scene.Scene(
    scene.Group(fog=VOLUMES[1], ball=scene.Surface(SHAPES[6], [0.2, 0.3, 0.4], 0.9))
)


FLAT = flat.flatten(scene.Scene(scene.Group(ball=SURFACE, lamp=LIGHTS[2])))
STACKS = flat.stack_scene_once(scene.Scene(scene.Group(ball=SURFACE, lamp=LIGHTS[2])))


def ask_light(light, point, d_point):
    return light.sample(point, d_point), light.moved(SIMILARITY).sample(point, d_point)


def ask_node(node, ray, section):
    world, part = flat.flatten(scene.Scene(node)), rays.Span(section.t0, section.t1)
    medium = world.medium(section, world.prepare(ray), normal=True)
    return world.span(ray), world.occupied(ray, part), medium


MARCH = integrators.OccupancyMarch(9, 5, 0.1)
GUIDED = integrators.Guided(5, 9)
JOINT = integrators.Integrator(sg.Hierarchical((4, 5)), sg.Surfaces(2))
FIXED = sg.Hierarchical((4, 5), fixed=(jnp.linspace(0.0, 1.0, 6)[None],))


def ask_transform(transform, point):
    back = transform.inverse().point(transform.point(point))
    return transform.point(point), transform.direction(point), back


def ask_filter(filter, rgb):
    return filter(images.Image(rgb, rgb[..., 0], rgb[..., 1]))


def ask_loss(loss, level, rgb, lossmult):
    batch = data.Batch(jax.tree.map(lambda x: x[:2], RAYS), rgb, lossmult)
    return loss((level, jax.tree.map(lambda x: 0.5 * x, level)), batch, SCENE)


def ask_backdrop(backdrop, key, rgba):
    return backdrop.compose(rgba, backdrop.behind(key, rgba.shape[0]))


TABLE = {
    fields.AbstractField: Contract(
        FIELDS, lambda field, g, view: (field(g, view), field.density(g)), (GAUSSIANS, RAYS.view)
    ),
    shaders.AbstractShader: Contract(
        SHADERS, lambda shader, hit, view, lights: shader(hit, view, lights), (HITS, RAYS.view, LIT)
    ),
    shaders.AbstractCoordinates: Contract(
        [shaders.OnSurface(), shaders.InSpace()], lambda place, hit: place(hit), (HITS,)
    ),
    shapes.AbstractShape: Contract(
        SHAPES, lambda shape, ray: (shape.intersect(ray), shape.coverage(ray)), (RAYS,)
    ),
    shapes.AbstractBounded: Contract(
        [FACE, *(shape for shape in SHAPES if isinstance(shape, shapes.AbstractBounded))],
        lambda shape, center: (shape.bounding_ball().radius, center),
        (numbers(3, 3),),
    ),
    lights.AbstractEnvironment: Contract(
        [light for light in LIGHTS if isinstance(light, lights.AbstractEnvironment)],
        lambda light, normal, view: light.prepare().reflect(normal, view),
        (RAYS.view, -RAYS.view),
    ),
    lights.AbstractLight: Contract(LIGHTS, ask_light, (numbers(3, 3), 0.01 * numbers(3, 2, 3))),
    lights.AbstractSizedLight: Contract(
        SIZED,
        lambda light, point, uniform: (
            light.outlines(point),
            light.body(),
            light.sample_point(point, uniform),
        ),
        (numbers(3, 3), numbers(3, 2)),
    ),
    scene.AbstractBackground: Contract(
        [scene.Backdrop(shaders.Constant([0.2, 0.3, 0.4])), scene.Sky(LIGHTS[3])],
        lambda b, ray: b(ray),
        (RAYS,),
    ),
    scene.AbstractNode: Contract(NODES, ask_node, (RAYS, SECTIONS)),
    cameras.AbstractCamera: Contract(
        [
            *(PERSPECTIVE, ORTHOGRAPHIC, *LENSES, NDC),
            cameras.MovedCamera(SIMILARITY, PERSPECTIVE),
            sg.RollingShutter(PERSPECTIVE, [0.1, 0.0, 0.2, 0.05, -0.1, 0.02]),
        ],
        lambda camera, pixel: (camera.ray(pixel), camera.project(camera.ray(pixel).at(0.5))),
        (PIXELS,),
    ),
    encodings.AbstractEncoding: Contract(
        [encodings.IntegratedPositional(0, 4), encodings.Positional(1, 4), GRID],
        lambda encoding, gaussian: encoding(gaussian),
        (GAUSSIANS,),
    ),
    rays.AbstractBeam: Contract(
        [rays.ConeBeam(), rays.CylinderBeam()], lambda beam, *where: beam(*where), (RAYS, NEAR, FAR)
    ),
    rays.AbstractGaussian: Contract(
        [
            jax.tree.map(lambda x: x[0], GAUSSIANS),
            rays.FullGaussian([0.1, 0.2, 0.3], [1, 0, 0], np.diag([1.0, 2, 3])),
        ],
        lambda gaussian, scale: (gaussian.variance() * scale, gaussian.covariance()),
        (numbers(3),),
    ),
    samplers.AbstractSpacing: Contract(
        [samplers.Uniform(), samplers.Disparity()],
        lambda spacing, near, far: spacing(near, far, 4),
        (NEAR, FAR),
    ),
    sg.filters.AbstractFilter: Contract(FILTERS, ask_filter, (PICTURES,)),
    sg.filters.AbstractPixelFilter: Contract(
        [x for x in FILTERS if isinstance(x, sg.filters.AbstractPixelFilter)],
        lambda filter, rgb, place: filter.pixel(rgb, place, images.SRGB()),
        (numbers(3, 3), numbers(3, 2)),
    ),
    images.AbstractColorSpace: Contract(
        [images.SRGB(), images.Linear()],
        lambda space, rgb: (space.to_linear(rgb), space.from_linear(rgb)),
        (numbers(3, 4, 3),),
    ),
    losses.AbstractLoss: Contract(
        [losses.MultiLevelLoss(), losses.ProposalLoss()],
        ask_loss,
        (RADIANCE, TARGETS, COUNTS),
    ),
    transforms.AbstractTransform: Contract(TRANSFORMS, ask_transform, (numbers(3, 3),)),
    integrators.AbstractIntegrator: Contract(
        [
            sg.Hierarchical((4, 5)),
            integrators.Integrator(),
            FIXED,
            sg.Surfaces(2),
            sg.Path(2, 1),
            JOINT,
            MARCH,
            GUIDED,
            PerVolume(5, 9),
        ],
        lambda integrator, ray: integrator(
            scene_for(integrator), jax.tree.map(lambda x: x[None], ray), outputs=("normal",)
        ),
        (RAYS,),
    ),
    data.AbstractPixelChoice: Contract(
        [
            data.AllImages(),
            data.SingleImage(),
            data.Patches(3),
            pixels.PixelList(jnp.array([1, 5, 7])),
        ],
        lambda choice, key: choice(VIEWS, 4, key),
        (KEYS,),
    ),
    solving.AbstractRobustLoss: Contract(
        [solving.LeastSquares(), solving.Huber(0.3), solving.Cauchy(0.3)],
        lambda loss, squares: (loss.cost(squares), loss.weight(squares)),
        (numbers(3, 5),),
    ),
    data.AbstractBackdrop: Contract(
        [data.Solid([0.9, 1.0, 0.8]), data.Random(), data.IgnoreAlpha()],
        ask_backdrop,
        (KEYS, numbers(3, 5, 4)),
    ),
}


# Classes without an abstract class of their own.
RECORDS = [
    jax.tree.map(lambda x: x[0], RAYS),
    jax.tree.map(lambda x: x[0], HITS),
    jax.tree.map(lambda x: x[0], SECTIONS),
    rays.Span(1.0, 2.0),
    transforms.Ball(jnp.zeros(3), jnp.ones(())),
    rays.Medium(1.0, [0.1, 0.2, 0.3]),
    RADIANCE,
    images.Image(PICTURES[0], PICTURES[0, ..., 0], PICTURES[0, ..., 1]),
    jax.tree.map(lambda x: x[0], LIT),
    jax.tree.map(lambda x: x[0], LAYERS),
    eqx.filter_jit(LIGHTS[2].sample)(jnp.zeros(3), jnp.zeros((2, 3))),
    shapes.Crossing(jnp.ones(()), jnp.ones(2)),
    SHAPES[-1].distance,
    BUMPS,
    shapes.Fragment(jnp.ones(()), jnp.ones(()), jnp.ones(3), jnp.ones((3, 2)), jnp.ones(())),
    flat.MeshFace(FACE, jnp.ones(()), jnp.asarray(3)),
    visibility.FaceSums(jnp.ones(2), jnp.ones(2), jnp.ones(2)),
    flat.Instance(SURFACE, None, None, jnp.asarray(3)),
    flat.Occluder(SHAPES[6], jnp.ones(())),
    FLAT,
    FLAT.surfaces[0],
    STACKS,
    STACKS.surfaces[0],
    PerCopy(jnp.ones(3), 0),
    SCENE,
    VIEWS,
    data.Batch(RAYS, numbers(3, 3), numbers(3)),
    pixels.DrawnPixels(jnp.zeros(3, int), jnp.zeros((3, 2), int), numbers(3, 4)),
    data.Annealing(4.0, 10),
    mujoco.Pixels(SCENE, ("cam",)),
    data.Sightings(jnp.zeros(3, int), numbers(3, 3)),
    pixels.SceneCameras(("cam",)),
    pixels.ScenePixels(jnp.zeros(3, int), PIXELS, jnp.ones(3), ("cam",)),
    data.RayBatches(VIEWS, 4),
    sg.Picture(images.Image(PICTURES[0]), sg.Invert()),
    losses.LossTerms([0.1, 0.2], [0.01, 0.001]),
    fields.Dense(numbers(3, 2), numbers(3)),
    encodings.SphericalHarmonics(2),
    encodings.Contraction(1.0),
    OCCUPANCY,
    March(numbers(3), numbers(3)),
    MediaAlong(
        sg.rays.Medium(numbers(2, 3), numbers(2, 3, 3)), numbers(2, 4), *jnp.zeros((2, 2), int)
    ),
    scene.FieldReach(),
    scene.Pace(numbers(3), numbers(3)),
    PackedSteps(*jnp.zeros((2, 4), int), jnp.ones(4, bool), *jnp.zeros((2, 3), int)),
    NET.network,
    NET.output,
    Frozen(BOX),
    Tied("cam.focal"),
    rays.LampPolygons(numbers(2, 4, 3), numbers(2, 3)),
    lights.LampBody(SHAPES[6], numbers(3, 3), numbers(3)),
    lights.LightPoint(numbers(3), numbers(3), numbers(3), jnp.ones(())),
    shaders.ScatterSample(numbers(3), numbers(3), jnp.ones(()), *jnp.zeros((2, 1), bool)[:, 0]),
    shaders.SecondaryRays(numbers(2, 3), numbers(2, 3), *numbers(3, 2)),
]
# What has other fields, or other values of them, than the instances above.
VARIANTS = [
    fields.MipNerfMLP(8, 3, use_view=False, density_noise=1.0, skip=1, key=KEYS[1]),
    losses.MultiLevelLoss(0.5, sum_channels=True),
    sg.Hierarchical((3,), rays.CylinderBeam(), samplers.Disparity(), stop_gradient=False),
    sg.Hierarchical((4, 5), proposals=True),
    dataclasses.replace(NDC, published=True),
    scene.Volume(FIELDS[0], BOX, proposal=FIELDS[3]),
    scene.Volume(
        FIELDS[2],
        None,
        occupancy=scene.Occupancy(numbers(2, 3, 4), 0.4, 0.6, 1),
        contraction=encodings.Contraction(1.0),
        far_background=True,
    ),
    integrators.Guided(5, 9, fixed=jnp.linspace(0.0, 1.0, 6)[None]),
    March(numbers(3), numbers(3), scene.Pace(numbers(3), numbers(3))),
    images.Image(PICTURES[0], space=images.Linear()),
    fields.GridField(GRID, 8, precision="bfloat16", density_bias=-1.0, key=KEYS[2]),
    images.Image(PICTURES[0], normal=PICTURES[1], median_depth=PICTURES[0, ..., 1]),
    rays.Medium(1.0, [0.1, 0.2, 0.3], jnp.array([0.0, 0.6, 0.8])),
    dataclasses.replace(jax.tree.map(lambda x: x[0], LAYERS), normal=numbers(2, 3)),
    dataclasses.replace(RADIANCE, normal=numbers(3, 2, 3), median_depth=numbers(3, 2)),
    dataclasses.replace(RADIANCE, overflow=jnp.ones((3, 2), int), requested=jnp.ones((3, 2), int)),
]
INSTANCES = [x for contract in TABLE.values() for x in contract.instances] + RECORDS + VARIANTS


# Training has tests of its own: its values hold keys and the optimiser's moments.
TRAINING = "scenegraph.fitting.", "scenegraph.optimizers."
CLASSES = [cls for cls in find_modules("scenegraph") if not cls.__module__.startswith(TRAINING)]


def final_classes(parent: type) -> set[type]:
    """The library's final classes below `parent`."""
    return {x for x in CLASSES if issubclass(x, parent) and not x.__name__.startswith("Abstract")}


def abstract_classes() -> set[type]:
    """The abstract classes that stand directly below `AbstractModule`."""
    below = {cls for cls in CLASSES if cls.__bases__ == (AbstractModule,)}
    return {cls for cls in below if cls.__name__.startswith("Abstract")}
