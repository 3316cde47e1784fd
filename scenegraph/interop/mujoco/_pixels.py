"""Observations of pixels for learning: colours, depth and segmentation of many worlds."""

from typing import Any, get_args, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._typing import Array, Int
from ...images import SRGB
from ...numerics import AbstractModule
from ...rendering import render, render_batch
from ...scene import find_contents, Scene
from ._frames import GeomFrame, pose


# What an observation may hold.
Quantity = Literal["rgb", "depth", "segmentation"]


def geom_numbers(scene: Scene) -> Int[Array, " surfaces"]:
    """Returns the geom that every surface of a scene is, by the surface's number.

    **Arguments:**

    - `scene`: a scene from `scene_from_model`, or one that has such a scene in it.

    **Returns:**

    Numbers of geoms in the model, -1 for surfaces that are none: `numbers[image.surface]` of a
    picture with the output `"surface"`, where that is not -1, are the geoms of pixels.
    """
    frames = [leaf.transforms for leaf in find_contents(scene).surfaces]
    numbers = [[x.number for x in own if isinstance(x, GeomFrame)] for own in frames]
    none = jnp.asarray(-1, jnp.int32)
    return jnp.stack([own[-1] if own else none for own in numbers]) if numbers else none[None]


class Pixels(AbstractModule):
    """Observations of a state by cameras: a pure function, for Brax's and Gymnasium's wrappers.

    **Arguments:**

    - `scene`: a scene from `scene_from_model`.
    - `cameras`: the names of cameras in the model; `"free"` is the viewer's. Static.
    - `show`: what is observed: `"rgb"`, bytes of sRGB, `height width 3`; `"depth"`, the distance
      along the camera's axis, `height width`; `"segmentation"`, the numbers of geoms, -1 for none,
      `height width`. Static.
    - `as_bytes`: if false, `"rgb"` are floating numbers from 0 to 1, which have derivatives;
      static.

    Example: two quantities of one state.

    ```python
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom size='.2'/></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = sg.interop.mujoco.scene_from_model(model, width=24, height=16)
    observe = sg.interop.mujoco.Pixels(scene, ("free",), ("rgb", "segmentation"))
    seen = observe(data)
    seen["free"]["rgb"].shape, seen["free"]["segmentation"].max()
    ```
    """

    scene: Scene
    cameras: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    show: tuple[Quantity, ...] = eqx.field(static=True, default=("rgb",))
    as_bytes: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if unknown := [x for x in self.show if x not in get_args(Quantity)]:
            raise ValueError(
                f"`Pixels.show` may have {', '.join(get_args(Quantity))}; got {unknown[0]!r}."
            )

    def __call__(self, data: Any) -> dict[str, dict[str, Array]]:
        """Observes one state, or inside `jax.vmap` any number of them.

        **Arguments:**

        - `data`: an `MjData` or `mjx.Data`, as for `pose`.

        **Returns:**

        For every camera, what is observed, by name.
        """
        scene = pose(self.scene, data)
        return {name: self._look(scene, f"cameras.{name}", render) for name in self.cameras}

    def many(self, data: Any) -> dict[str, dict[str, Array]]:
        """Observes many states, by `render_batch`.

        **Arguments:**

        - `data`: an `mjx.Data` whose arrays have a leading axis over worlds.

        **Returns:**

        The same as of one state, with a leading axis over worlds.
        """
        scenes = jax.vmap(lambda data: pose(self.scene, data))(data)
        return {name: self._look(scenes, f"cameras.{name}", render_batch) for name in self.cameras}

    def _look(self, scene: Scene, camera: str, draw: Any) -> dict[str, Array]:
        outputs = ("surface",) if "segmentation" in self.show else ()
        image = draw(scene, camera, outputs=outputs)
        results: dict[str, Array] = {}
        for name in self.show:
            if name == "rgb":
                numbers = jnp.clip(SRGB().from_linear(image.space.to_linear(image.rgb)), 0, 1)
                results[name] = (
                    (255 * numbers + 0.5).astype(jnp.uint8) if self.as_bytes else numbers
                )
            elif name == "depth":
                results[name] = image.depth
            else:
                numbers = geom_numbers(self.scene)
                # A pixel that shows more of the background than of things shows none.
                there = (image.surface >= 0) & (image.alpha >= 0.5)
                results[name] = jnp.where(there, numbers[jnp.maximum(image.surface, 0)], -1)
        return results
