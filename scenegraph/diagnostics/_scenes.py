import numpy as np

from ..fields import ConstantFog, GaussianBlob
from ..integrators import Hierarchical, Integrator
from ..lights import AmbientLight, DirectionalLight, EnvironmentLight, PointLight, SpotLight
from ..scene import Group, Scene, Surface, Transformed, Volume
from ..shaders import (
    Checker,
    GGX,
    Gradient,
    ImageTexture,
    InSpace,
    Lambert,
    Noise,
    Normals,
    Phong,
    Stripes,
    UV,
)
from ..shapes import Box, Capsule, Cylinder, Disk, Plane, Rectangle, SignedDistance, Sphere
from ..transforms import Affine, Similarity


def toy_scene() -> Scene:
    """Makes a small scene of analytic fields: coloured clouds over a slab of fog, all inside +-1.

    It has nested groups, a similarity, an unequal scaling and overlapping media.

    **Returns:**

    The scene, on a white background.
    """
    slab = Volume(ConstantFog(14.0, [0.85, 0.8, 0.7]), Box([-0.7, -0.7, -0.62], [0.7, 0.7, -0.5]))
    clouds = Group(
        red=Volume(GaussianBlob([0.3, 0.0, 0.0], 0.14, 30.0, [0.85, 0.15, 0.1])),
        green=Volume(GaussianBlob([-0.15, 0.28, 0.05], 0.12, 30.0, [0.1, 0.6, 0.2])),
        blue=Volume(GaussianBlob([-0.15, -0.26, -0.1], 0.16, 25.0, [0.1, 0.25, 0.8])),
    )
    pillar = Volume(
        GaussianBlob([0.0, 0.0, 0.0], 1.0, 6.0, [0.95, 0.75, 0.2]), Box([-3] * 3, [3] * 3)
    )
    stretch = [[0.07, 0.0, 0.0], [0.0, 0.07, 0.0], [0.0, 0.0, 0.3]]
    return Scene(
        Group(
            slab=slab,
            clouds=Transformed(clouds, Similarity(rotation=[0.924, 0.0, 0.0, 0.383], scale=1.1)),
            pillar=Transformed(pillar, Affine(stretch, [0.0, 0.0, -0.05])),
        ),
        background=[1.0, 1.0, 1.0],
    )


def gallery_scene() -> Scene:
    """Makes a scene of all shapes, shaders and lights, with transforms, and a cloud among them.

    A good place for the camera is `(0, -7, 4)`.

    **Returns:**

    The scene.
    """
    cloud = Volume(
        GaussianBlob([0.0, -1.2, 0.6], 0.35, 1.5, [0.9, 0.9, 0.95]),
        Box([-1.5, -2.5, 0.05], [1.5, 0.0, 2.0]),
    )
    return Scene(
        Group(shapes=_shapes(), lights=_lights(), cloud=cloud),
        background=Gradient([0.0, -0.5], [0.0, 0.7], [0.7, 0.75, 0.8], [0.2, 0.4, 0.8]),
        integrator=Integrator(Hierarchical((24,))),
    )


def _shapes() -> Group:
    # No two faces are in one plane: either could be the one in front, and the picture would jump
    # when one is moved.
    turned = Similarity(translation=[1.9, 0.9, 0.6], rotation=[0.8, 0.5, 0.1, 0.3], scale=0.8)
    stretched = Affine([[0.4, 0.1, 0.0], [0.0, 0.3, 0.1], [0.0, 0.0, 0.5]], [2.0, -0.7, 0.5])
    wood = Noise(0.25, [0.5, 0.3, 0.1], [0.8, 0.6, 0.3])
    return Group(
        floor=Surface(Plane(), Lambert(Checker(0.5, [0.8, 0.8, 0.8], [0.3, 0.3, 0.35]))),
        ball=Surface(Sphere([-2.0, 0.5, 0.52], 0.5), Phong(Stripes(0.4), [0.3, 0.3, 0.3], 20.0)),
        block=Surface(Box([-1.1, 0.2, 0.02], [-0.4, 0.9, 0.72]), Lambert(wood)),
        drum=Surface(Cylinder([0.3, 0.6, 0.43], 0.4, 0.8), GGX([0.9, 0.6, 0.2], 0.7, 0.4)),
        rod=Surface(
            Capsule([1.0, 0.4, 0.2], [1.3, 0.8, 0.8], 0.2),
            Lambert(Checker(0.2, coordinates=InSpace())),
        ),
        egg=Transformed(Surface(Sphere(), Normals()), stretched),
        card=Transformed(Surface(Rectangle(), Lambert(ImageTexture(_texels()))), turned),
        coin=Surface(Disk([-1.2, -0.8, 0.15], 0.4), UV()),
        ring=Surface(
            SignedDistance.from_grid(_ring(), [-1.9, -1.6, 0.1], [-0.3, 0.0, 0.9]),
            Lambert([0.7, 0.2, 0.2]),
        ),
    )


def _lights() -> Group:
    sky = np.linspace(0.3, 0.05, 4)[:, None, None] * np.array([0.8, 0.9, 1.0]) * np.ones((4, 8, 1))
    return Group(
        lamp=PointLight([2.0, -3.0, 4.0], [20.0, 19.0, 18.0]),
        spot=SpotLight([-2.0, -2.5, 4.0], [0.3, 0.7, -1.0], [20.0, 20.0, 25.0], 0.5, 0.3),
        sun=DirectionalLight([-0.4, 0.5, -1.0], [0.4, 0.4, 0.35]),
        sky=EnvironmentLight(sky, 4),
        even=AmbientLight([0.05, 0.05, 0.06]),
    )


def _texels() -> np.ndarray:
    rows, columns = np.mgrid[0:8, 0:8] / 7
    return np.stack([rows, columns, 1 - rows * columns], axis=-1)


def _ring() -> np.ndarray:
    x, y, z = np.mgrid[-0.8:0.8:17j, -0.8:0.8:17j, -0.4:0.4:9j]
    return np.hypot(np.hypot(x, y) - 0.5, z) - 0.15
