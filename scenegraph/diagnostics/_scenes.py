from ..fields import ConstantFog, GaussianBlob
from ..scene import Group, Scene, Transformed, Volume
from ..shapes import Box
from ..transforms import Affine, Similarity


def toy_scene() -> Scene:
    """A small scene of analytic fields: coloured clouds over a slab of fog, all inside +-1.

    Nested groups, a similarity, an unequal scaling and overlapping media.

    **Returns:**

    The scene, on white.
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
