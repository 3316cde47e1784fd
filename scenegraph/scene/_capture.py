"""Corrections of the cameras and colours of pictures, as leaves of the scene."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..cameras import AbstractCamera
from ..numerics import einsum, Frozen, is_frozen, matmul, unfreeze
from ._node import AbstractNode


# The factor of the mean square of appearance codes in the loss, which keeps them from drifting.
_CODE_STRENGTH = 1e-6


def _frozen(value: Any) -> Any:
    return value if value is None or is_frozen(value) else Frozen(value)


class Capture(AbstractNode):
    """The cameras of pictures, and what is corrected of them and of their colours.

    As a node of a scene it changes nothing of what is rendered; it makes the corrections leaves,
    which `fit` optimises with all others. `sg.fitting.with_corrections` makes it.

    Corrections of cameras are preconditioned: they are `pose_scales @ poses` and `lens_scale @
    lens`, so that a step of 1 in any direction moves what a picture shows by about a pixel.

    **Arguments:**

    - `cameras`: the given cameras, one whose leaves have a leading axis `frames`; frozen.
    - `poses`: the scaled correction of every camera's pose, a tangent vector of SE(3) about the
      camera's own axes, `frames 6`; `None` for none.
    - `lens`: the scaled correction of the lens, which all pictures share: the logarithm of the
      focal length, the shift of the principal point over the focal length, and, of lenses that have
      them, k1 and k2, `lens`; `None` for none.
    - `colors`: the correction of the affine map from the scene's colours to those of each picture,
      less its mean over the pictures, `frames 3 4`; `None` for none.
    - `pose_scales`, `lens_scale`: the preconditioners, `frames 6 6` and `lens lens`; frozen; `None`
      where nothing is corrected.
    - `color_strength`: the factor of the mean square of `colors` in the loss; static.
    - `appearances`: the appearance code of each picture, which fields of that many codes take the
      difference to their mean from, `frames codes`; `None` for none.

    **Source:** Park et al. 2023, "CamP: Camera Preconditioning for Neural Radiance Fields".
    """

    cameras: Any = eqx.field(converter=_frozen)
    poses: Float[Array, "frames 6"] | None = None
    lens: Float[Array, " lens"] | None = None
    colors: Float[Array, "frames 3 4"] | None = None
    pose_scales: Any = eqx.field(converter=_frozen, default=None)
    lens_scale: Any = eqx.field(converter=_frozen, default=None)
    color_strength: float = eqx.field(static=True, default=0.0)
    appearances: Float[Array, "frames codes"] | None = None

    def corrected(self) -> AbstractCamera:
        """Applies the corrections of poses and lens: cameras whose leaves have an axis `frames`."""
        own: Capture = unfreeze(self)
        # CamP: delta_i = P_i p_i, with the preconditioners P_i.
        poses = None if own.poses is None else einsum("fij,fj->fi", own.pose_scales, own.poses)
        lens = None if own.lens is None else matmul(own.lens_scale, own.lens)
        return jax.vmap(move_camera, (0, None if poses is None else 0, None))(
            own.cameras, poses, lens
        )

    def color_maps(self) -> Float[Array, "frames 3 4"] | None:
        """Computes the affine maps from the scene's colours to those of the pictures, if any."""
        if self.colors is None:
            return None
        # [I 0] + c_i - mean_j c_j: the scene's own colours are those of a mean picture.
        return jnp.eye(3, 4) + self.colors - jnp.mean(self.colors, axis=0)

    def codes(self) -> Float[Array, "frames codes"] | None:
        """Computes the appearance codes of the pictures, whose mean is zero, if there are any."""
        if self.appearances is None:
            return None
        return self.appearances - jnp.mean(self.appearances, axis=0)

    def penalty(self) -> Scalar:
        """Computes the term of the loss that draws corrections of colours, and codes, to none."""
        total = jnp.zeros(())
        if self.colors is not None:
            total += self.color_strength * jnp.mean(self.colors**2)
        if self.appearances is not None:
            total += _CODE_STRENGTH * jnp.mean(self.appearances**2)
        return total


def move_camera(
    camera: AbstractCamera, pose: Float[Array, "6"] | None, lens: Float[Array, " lens"] | None
) -> AbstractCamera:
    """Corrects one camera's pose by a tangent vector, and its lens by `lens_size` numbers."""
    known: Any = camera
    if pose is not None:
        camera = eqx.tree_at(lambda c: c.pose.delta, camera, known.pose.delta + pose)
    if lens is None:
        return camera
    # f e^a, c + f (b, b'), k1 + c1, k2 + c2
    changed = [known.focal * jnp.exp(lens[0]), known.principal_point + known.focal * lens[1:3]]
    changed += [getattr(known, name) + x for name, x in zip(_bends(camera), lens[3:], strict=True)]
    names = ("focal", "principal_point", *_bends(camera))
    return eqx.tree_at(lambda c: [getattr(c, name) for name in names], camera, changed)


def lens_size(camera: AbstractCamera) -> int:
    """Returns how many numbers correct the lens of a camera."""
    return 3 + len(_bends(camera))


def _bends(camera: AbstractCamera) -> tuple[str, ...]:
    return ("k1", "k2") if {"k1", "k2"} <= {*vars(camera)} else ()
