"""Frames of a simulation's things in the world, and their places in its state."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._typing import Array, Int, Matrix3, Vector
from ...numerics import as_float_leaf, safe_normalise, tangents
from ...scene import Scene
from ...transforms import AbstractTransform, rotate


def _as_number(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jnp.asarray(value, jnp.int32)


class GeomFrame(AbstractTransform):
    """The frame of a geom in the world, which `pose` moves.

    **Arguments:**

    - `matrix`: a rotation, the geom's axes in the world, `3 3`.
    - `translation`: the geom's centre in the world.
    - `number`: the geom's number in the model.
    """

    matrix: Matrix3 = eqx.field(converter=as_float_leaf)
    translation: Vector = eqx.field(converter=as_float_leaf)
    number: Int[Array, ""] = eqx.field(converter=_as_number)

    is_similarity: ClassVar[bool] = True

    def linear(self) -> Matrix3:
        return self.matrix

    def offset(self) -> Vector:
        return self.translation


class SiteFrame(AbstractTransform):
    """The frame of a site in the world, which `pose` moves.

    **Arguments:**

    - `matrix`: a rotation, the site's axes in the world, `3 3`.
    - `translation`: the site's position in the world.
    - `number`: the site's number in the model.
    """

    matrix: Matrix3 = eqx.field(converter=as_float_leaf)
    translation: Vector = eqx.field(converter=as_float_leaf)
    number: Int[Array, ""] = eqx.field(converter=_as_number)

    is_similarity: ClassVar[bool] = True

    def linear(self) -> Matrix3:
        return self.matrix

    def offset(self) -> Vector:
        return self.translation


class CameraFrame(AbstractTransform):
    """The frame of a camera in the world, which `pose` moves.

    **Arguments:**

    - `matrix`: a rotation, the camera's axes in the world, `3 3`.
    - `translation`: the camera's position in the world.
    - `number`: the camera's number in the model.
    """

    matrix: Matrix3 = eqx.field(converter=as_float_leaf)
    translation: Vector = eqx.field(converter=as_float_leaf)
    number: Int[Array, ""] = eqx.field(converter=_as_number)

    is_similarity: ClassVar[bool] = True

    def linear(self) -> Matrix3:
        return self.matrix

    def offset(self) -> Vector:
        return self.translation


class LightFrame(AbstractTransform):
    """The frame of a light in the world, whose z axis is the way it shines; `pose` moves it.

    States of MJX do not say where lights are: this computes it from those of bodies.

    **Arguments:**

    - `axis`: the direction in the world in which the light shines.
    - `translation`: the light's position in the world.
    - `mode`: 0 for one that is fixed to its body, 1 and 2 for one that tracks the body or its
      subtree's centre of mass, 3 and 4 for one that shines at another body or its subtree.
    - `body`, `target`: the numbers of the body that has the light, and of that which it shines at.
    - `place`, `way`: position and direction in the body's frame.
    - `offsets`: the offsets that a tracking light keeps in the world, from the body and from the
      subtree's centre of mass, and the direction that it keeps, `3 3`.
    """

    axis: Vector = eqx.field(converter=as_float_leaf)
    translation: Vector = eqx.field(converter=as_float_leaf)
    mode: Int[Array, ""] = eqx.field(converter=_as_number)
    body: Int[Array, ""] = eqx.field(converter=_as_number)
    target: Int[Array, ""] = eqx.field(converter=_as_number)
    place: Vector = eqx.field(converter=as_float_leaf)
    way: Vector = eqx.field(converter=as_float_leaf)
    offsets: Matrix3 = eqx.field(converter=as_float_leaf)

    is_similarity: ClassVar[bool] = True

    def linear(self) -> Matrix3:
        axis = safe_normalise(self.axis)
        return jnp.stack([*tangents(axis), axis], axis=1)

    def offset(self) -> Vector:
        return self.translation

    def moved(self, bodies: "_Bodies") -> "LightFrame":
        """Returns the frame in another state.

        **Source:** MuJoCo's `mj_camlight`.
        """
        position, turn, middle = (x[self.body] for x in bodies)
        position_of_target, _, middle_of_target = (x[self.target] for x in bodies)
        fixed = position + rotate(turn, self.place)
        tracked = [position + self.offsets[0], middle + self.offsets[1]]
        translation = jnp.stack([fixed, *tracked, fixed, fixed])[self.mode]
        ahead = [position_of_target - translation, middle_of_target - translation]
        kept = self.offsets[2]
        axis = jnp.stack([rotate(turn, self.way), kept, kept, *ahead])[self.mode]
        where = lambda x: (x.axis, x.translation)
        return eqx.tree_at(where, self, (axis, translation))


# Positions, rotations, and the centres of mass of subtrees of all bodies.
_Bodies = tuple[Array, Array, Array]
_FRAMES = GeomFrame, SiteFrame, CameraFrame, LightFrame
_NAMES = {GeomFrame: "geom", SiteFrame: "site", CameraFrame: "cam"}


def pose(scene: Scene, data: Any) -> Scene:
    """Moves everything in a scene of a model to its place in a state of the simulation.

    It is a pure function, for `jit`, `grad`, `vmap` and `scan`; derivatives pass from pictures to
    the state, and through `mjx.forward` to the positions of joints.

    **Arguments:**

    - `scene`: a scene from `scene_from_model`, or one that has such a scene in it.
    - `data`: an `MjData` or `mjx.Data` in which positions are computed, as by `mujoco.mj_forward`
      or `mjx.forward` (`mujoco.mj_kinematics` does not move cameras; call `mj_camlight` and
      `mj_comPos` as well).

    **Returns:**

    The scene with geoms, sites, cameras and lights where the state has them.

    Example: the height of a falling ball.

    ```python
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'><freejoint/>"
        "<geom name='ball' size='.2'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    scene = sg.interop.mujoco.scene_from_model(model, width=24, height=16)
    for _ in range(10):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    image = sg.render(sg.interop.mujoco.pose(scene, data), "cameras.free")
    ```
    """
    bodies = None

    def moved(node: Any) -> Any:
        nonlocal bodies
        if isinstance(node, LightFrame):
            tables = _table(data, "xpos"), _table(data, "xmat"), _table(data, "subtree_com")
            bodies = bodies or tables
            return node.moved(bodies)
        if type(node) not in _NAMES:
            return node
        name = _NAMES[type(node)]
        places, turns = _table(data, f"{name}_xpos"), _table(data, f"{name}_xmat")
        value = turns[node.number], places[node.number]
        return eqx.tree_at(lambda x: (x.matrix, x.translation), node, value)

    return jax.tree.map(moved, scene, is_leaf=lambda x: isinstance(x, _FRAMES))


def _table(data: Any, name: str) -> Array:
    """Returns a table of a state, a copy, which later steps of the simulation do not change."""
    value = getattr(data, name)
    array = as_float_leaf(value) if isinstance(value, jax.Array) else as_float_leaf(value.copy())
    return array.reshape(-1, 3, 3) if name.endswith("mat") else array
