"""Pictures against brute force (`quadrature.py`): nested groups, moved and overlapping media.

Both have an error of some 1e-4 where a boundary lies within an interval; elsewhere, of 1e-5.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
import support.quadrature as brute
from scenegraph.fields import ConstantFog, GaussianBlob
from support.helpers import assert_close


TOLERANCE = 3e-4
RED, GREEN, BLUE, GREY = (0.9, 0.1, 0.05), (0.1, 0.8, 0.2), (0.1, 0.2, 0.95), (0.5, 0.55, 0.6)
BACKGROUND = (0.2, 0.4, 0.6)
EYE, TARGET, UP = [3.0, -2.0, 1.5], [0.1, 0.0, 0.1], [0.0, 0.0, 1.0]
MANY = sg.Hierarchical((256, 512))
SMALL_BOX, LOW_BOX = ([-0.5] * 3, [0.6] * 3), ([-0.9, -0.8, -0.4], [0.9, 0.7, 0.2])
look = eqx.filter_jit(sg.render_rays)


def blob(center, radius, extinction, color, frame=None, box=None):
    """A blob in the library's volume, and its brute-force version."""
    volume = sg.Volume(GaussianBlob(center, radius, extinction, color), box and sg.Box(*box))
    return volume, brute.Matter(brute.blob(center, radius, extinction), color, frame, box)


def fog(extinction, color, frame=None, box=None):
    """The same for fog."""
    volume = sg.Volume(ConstantFog(extinction, color), box and sg.Box(*box))
    return volume, brute.Matter(brute.fog(extinction), color, frame, box)


def similarity(axis, angle, scale, shift):
    """One map in the library's words and in numpy's."""
    ours = sg.Similarity(shift, brute.quaternion(axis, angle), scale)
    return ours, brute.frame(scale * brute.turn(axis, angle), shift)


SPIN, SPIN_FRAME = similarity([1, 2, 3], 0.8, 1.7, [0.2, -0.1, 0.3])
SHRINK, SHRINK_FRAME = similarity([0, 1, -1], -1.1, 0.6, [-0.3, 0.4, 0.1])
MATRIX = [[1.5, 0.3, 0.0], [0.0, 0.5, 0.2], [-0.1, 0.0, 0.8]]
STRETCH, STRETCH_FRAME = sg.Affine(MATRIX, [0.1, 0.2, -0.2]), brute.frame(MATRIX, [0.1, 0.2, -0.2])


# --- Scenes: a root for the library, and what is in it for brute force


def two_blobs():
    red, red_matter = blob([0.2, 0.1, 0.0], 0.4, 3.0, RED)
    blue, blue_matter = blob([-0.2, 0.0, 0.2], 0.5, 1.5, BLUE)
    return sg.Group(red=red, blue=blue), [red_matter, blue_matter]


def boxes_of_fog():
    """Two boxes that overlap in part, in fog that fills every ray from near to far."""
    a, a_matter = fog(1.1, RED, box=SMALL_BOX)
    b, b_matter = fog(2.3, GREEN, box=LOW_BOX)
    c, c_matter = fog(0.05, GREY)
    return sg.Group(a=a, inner=sg.Group(b=b, c=c)), [a_matter, b_matter, c_matter]


def scaled_twice():
    """A blob and fog in boxes, under two similarities, through a blob that is not moved."""
    frame = SPIN_FRAME @ SHRINK_FRAME
    a, a_matter = blob([0.1, -0.2, 0.0], 0.5, 2.0, RED, frame, SMALL_BOX)
    b, b_matter = fog(1.4, GREEN, frame, LOW_BOX)
    c, c_matter = blob([0.0, 0.1, 0.1], 0.4, 2.5, BLUE)
    inner = sg.Transformed(sg.Group(a=a, b=b), SHRINK)
    return sg.Group(moved=sg.Transformed(inner, SPIN), c=c), [a_matter, b_matter, c_matter]


def stretched():
    """Unequal scaling and shear of a blob and a box of fog, within a similarity, in thin fog."""
    frame = SPIN_FRAME @ STRETCH_FRAME
    a, a_matter = blob([0.1, 0.0, 0.2], 0.3, 2.0, GREEN, frame)
    b, b_matter = fog(0.9, RED, frame, SMALL_BOX)
    c, c_matter = fog(0.1, GREY)
    inner = sg.Group(deep=sg.Transformed(sg.Group(a=a, b=b), STRETCH))
    return sg.Group(outer=sg.Transformed(inner, SPIN), c=c), [a_matter, b_matter, c_matter]


def camera_inside():
    """Boxes that begin behind the eye."""
    a, a_matter = fog(0.8, RED, box=([-9.0] * 3, [9.0] * 3))
    b, b_matter = fog(0.4, BLUE, SHRINK_FRAME, box=([-9.0] * 3, [0.5] * 3))
    return sg.Group(a=a, b=sg.Transformed(b, SHRINK)), [a_matter, b_matter]


SCENES = {f.__name__: f for f in (two_blobs, boxes_of_fog, scaled_twice, stretched, camera_inside)}


# --- Cameras: 5x4 rays, as pixels or as few of the many pixels of a large picture

WIDTH, HEIGHT, MANY_PIXELS, NEAR, FAR = 5, 4, 1000, 1.5, 6.5
KINDS = {"perspective": (sg.PerspectiveCamera, 9.0), "orthographic": (sg.OrthographicCamera, 2.5)}


def library_camera(kind, factor):
    """A camera of `5 factor x 4 factor` pixels."""
    camera, focal = KINDS[kind]
    pose = sg.Pose.look_at(EYE, TARGET, UP)
    return camera(pose, focal * factor, WIDTH * factor, HEIGHT * factor, near=NEAR, far=FAR)


def brute_picture(matters, kind):
    """`(rgb, alpha, depth)` along lines without width."""
    pose, focal, parallel = brute.camera_frame(EYE, TARGET, UP), KINDS[kind][1], "ortho" in kind
    return brute.picture(
        matters, pose, WIDTH, HEIGHT, focal, NEAR, FAR, BACKGROUND, parallel=parallel
    )


LONG = [("two_blobs", "perspective"), ("scaled_twice", "perspective")]  # to compile
CASES = [
    pytest.param(scene, kind, marks=pytest.mark.slow if (scene, kind) in LONG else ())
    for scene in SCENES
    for kind in KINDS
]


@pytest.mark.parametrize(("scene", "kind"), CASES)
def test_narrow_cones(scene, kind):
    """A thousandth of the pixels' width: blobs, which are averaged over it, are as at points."""
    root, matters = SCENES[scene]()
    rows, columns = np.divmod(np.arange(WIDTH * HEIGHT), WIDTH)
    pixels = MANY_PIXELS * (np.stack([columns, rows], 1) + np.float32(0.5))
    rays = jax.vmap(library_camera(kind, MANY_PIXELS).ray)(jnp.asarray(pixels))
    seen = look(sg.Scene(root, background=BACKGROUND), rays, MANY)[-1]
    rgb, alpha, depth = brute_picture(matters, kind)
    assert_close(seen.rgb, rgb.reshape(-1, 3), 0, TOLERANCE)
    assert_close(seen.alpha, alpha.reshape(-1), 0, TOLERANCE)
    assert_close(seen.depth, depth.reshape(-1), TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_picture(kind):
    """`render` itself: fog is the same for pixels of any width."""
    root, matters = boxes_of_fog()
    image = sg.render(sg.Scene(root, background=BACKGROUND), library_camera(kind, 1), MANY)
    rgb, alpha, depth = brute_picture(matters, kind)
    assert_close(image.rgb, rgb, 0, TOLERANCE)
    assert_close(image.alpha, alpha, 0, TOLERANCE)
    assert_close(image.depth, depth, TOLERANCE)
