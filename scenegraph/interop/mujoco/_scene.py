"""The scene of a MuJoCo model."""

import os
import pathlib
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...assets import unique_names
from ...cameras import AbstractCamera, OrthographicCamera, PerspectiveCamera
from ...io import FileError, import_extra
from ...lights import AbstractLight, AmbientLight, DirectionalLight, PointLight, SpotLight
from ...scene import Group, Scene, Surface, Transformed
from ...shapes import (
    AbstractShape,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Rectangle,
    Sphere,
    TriangleMesh,
)
from ._frames import CameraFrame, GeomFrame, LightFrame, pose, SiteFrame
from ._looks import as_light, headlight_of, look_of, sky_of, takes_uv


# MuJoCo's numbers of geoms.
_KINDS = {
    0: "plane",
    1: "height field",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
    8: "sdf",
}
_DIRECTIONAL, _POINT = 1, 2
# The groups that MuJoCo shows by default.
_SHOWN = (0, 1, 2)


def scene_from_model(
    model: Any,
    *,
    width: int = 320,
    height: int = 240,
    groups: Sequence[int] = _SHOWN,
    sites: bool = False,
    lights: bool = True,
) -> Scene:
    """Makes a scene of a MuJoCo model, in its initial state; `pose` moves it to another.

    Every body is a `Group` of its geoms, by their names: `torso.head` is the geom `head` of the
    body `torso`. Cameras are in `cameras`, the free camera of the viewer as `cameras.free`; lights
    in `lights`. Colours are decoded from the numbers that MuJoCo shows to linear light; lamps keep
    the brightness that they have at the model's centre, where MuJoCo has none fall off by
    distance. The headlight is at the eye of whatever camera looks (`Headlit`). Not shown are
    highlights, reflections, haze, tendons and skins; pictures on cubes become their mean colour.

    **Arguments:**

    - `model`: an `MjModel`.
    - `width`, `height`: the size of the cameras' pictures, in pixels. Keyword only, as all others.
    - `groups`: the groups of geoms, and of sites, that are shown.
    - `sites`: if true, sites are shown.
    - `lights`: if false, the scene has no lights: colours are then those of materials, in even
      light.

    **Returns:**

    The scene.

    **Errors:**

    Warns of geoms of a type that is not drawn, named and counted. `MissingExtra` without the extra
    `mujoco`.

    Example: a model of one box, seen by its own camera.

    ```python
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><camera name='eye' pos='0 -2 0' xyaxes='1 0 0 0 0 1'/>"
        "<body name='thing'><geom name='block' type='box' size='.3 .2 .1'/></body>"
        "</worldbody></mujoco>"
    )
    scene = sg.interop.mujoco.scene_from_model(model, width=24, height=16)
    image = sg.render(scene, "cameras.eye")
    "thing.block" in scene
    ```
    """
    mujoco = import_extra("mujoco", "mujoco", "a MuJoCo model")
    headlight = headlight_of(model) if lights else np.zeros(3)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    reader = _Reader(mujoco, model, data, (width, height), tuple(groups), headlight)
    bodies = reader.bodies(sites)
    parts = {**bodies, "cameras": Group(**reader.cameras())}
    parts["lights"] = Group(**(reader.lights() if lights else {"even": AmbientLight()}))
    sky = sky_of(model)
    scene = Scene(Group(**parts), background=[0.0, 0.0, 0.0] if sky is None else sky)
    return pose(scene, data)


def load_model(path: str | os.PathLike, **options: Any) -> Scene:
    """Makes a scene of a file that MuJoCo reads: MJCF or URDF.

    **Arguments:**

    - `path`: the path of the file; meshes and textures that it names are read with it.
    - `options`: those of `scene_from_model`.

    **Returns:**

    The scene.

    **Errors:**

    `FileError` for a file that is missing or that MuJoCo refuses, with its message; `MissingExtra`
    without the extra `mujoco`.
    """
    mujoco = import_extra("mujoco", "mujoco", "a file of MuJoCo")
    if not pathlib.Path(path).is_file():
        raise FileError(f"{path}: there is no such file.")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise FileError(f"{path}: MuJoCo refuses it: {str(error).strip()}") from None
    return scene_from_model(model, **options)


_STILL = np.eye(3), np.zeros(3)


class _Reader:
    """Reads the parts of one model."""

    def __init__(
        self,
        mujoco: Any,
        model: Any,
        start: Any,
        size: tuple[int, int],
        groups: tuple[int, ...],
        headlight: np.ndarray,
    ) -> None:
        self._mujoco, self._model, self._start = mujoco, model, start
        self._size, self._groups, self._headlight = size, groups, headlight
        self._left_out: Counter[str] = Counter()

    # --- Bodies

    def bodies(self, sites: bool) -> dict[str, Any]:
        """Returns a group for every body that shows anything."""
        model = self._model
        parts: list[list[tuple[str, Any]]] = [[] for _ in range(model.nbody)]
        for number in range(model.ngeom):
            if surface := self._geom(number):
                node = Transformed(surface, GeomFrame(*_STILL, number))
                parts[model.geom_bodyid[number]].append((self._name("GEOM", number), node))
        for number in range(model.nsite if sites else 0):
            if surface := self._site(number):
                node = Transformed(surface, SiteFrame(*_STILL, number))
                parts[model.site_bodyid[number]].append((self._name("SITE", number), node))
        if self._left_out:
            named = ", ".join(f"{count} of type {kind}" for kind, count in self._left_out.items())
            warnings.warn(f"a MuJoCo model has geoms that are not drawn: {named}.", stacklevel=3)
        names = unique_names(
            ["cameras", "lights", *(self._name("BODY", i) for i in range(model.nbody))]
        )[2:]
        return {
            name: Group(
                **dict(zip(unique_names(x for x, _ in own), [y for _, y in own], strict=True))
            )
            for name, own in zip(names, parts, strict=True)
            if own
        }

    def _name(self, kind: str, number: int) -> str:
        kinds = self._mujoco.mjtObj
        found = self._mujoco.mj_id2name(self._model, getattr(kinds, f"mjOBJ_{kind}"), number)
        return found or f"{kind.lower()}_{number}"

    def _geom(self, number: int) -> Surface | None:
        model = self._model
        rgba = model.geom_rgba[number]
        if model.geom_group[number] not in self._groups:
            return None
        kind, size = int(model.geom_type[number]), model.geom_size[number]
        shape = self._shape(kind, size, int(model.geom_dataid[number]))
        if shape is None:
            self._left_out[_KINDS.get(kind, str(kind))] += 1
            return None
        half = self._half(kind, size, int(model.geom_dataid[number]))
        look, opacity = look_of(
            model, int(model.geom_matid[number]), rgba, half, takes_uv(shape), self._headlight
        )
        return Surface(shape, look, opacity) if opacity > 0 else None

    def _site(self, number: int) -> Surface | None:
        model = self._model
        size, kind = model.site_size[number], int(model.site_type[number])
        shape = self._shape(kind, size, -1)
        if shape is None or model.site_group[number] not in self._groups:
            return None
        look, opacity = look_of(
            model,
            int(model.site_matid[number]),
            model.site_rgba[number],
            size,
            False,
            self._headlight,
        )
        return Surface(shape, look, opacity) if opacity > 0 else None

    def _half(self, kind: int, size: np.ndarray, data: int) -> np.ndarray:
        """Returns half of the lengths of what a picture is laid on."""
        return self._model.hfield_size[data] if _KINDS.get(kind) == "height field" else size

    def _shape(self, kind: int, size: np.ndarray, data: int) -> AbstractShape | None:
        name = _KINDS.get(kind)
        radius, half = float(size[0]), float(size[1])
        if name == "plane":
            # One without lengths is endless.
            return Rectangle(size=2 * size[:2]) if np.all(size[:2] > 0) else Plane()
        if name == "sphere":
            return Sphere(radius=radius)
        if name == "capsule":
            return Capsule([0.0, 0.0, -half], [0.0, 0.0, half], radius)
        if name == "ellipsoid":
            return Ellipsoid(radii=size)
        if name == "cylinder":
            return Cylinder([0.0, 0.0, 0.0], radius, 2 * half)
        if name == "box":
            return Box(-size, size)
        if name == "height field":
            return self._height_field(data)
        # A signed distance is drawn as its mesh.
        return self._mesh(data) if name in ("mesh", "sdf") and data >= 0 else None

    def _height_field(self, data: int) -> HeightField:
        model = self._model
        rows, columns = int(model.hfield_nrow[data]), int(model.hfield_ncol[data])
        begin = int(model.hfield_adr[data])
        x, y, above, below = model.hfield_size[data]
        heights = above * model.hfield_data[begin : begin + rows * columns].reshape(rows, columns)
        return HeightField(heights, [2 * x, 2 * y], base=-below)

    def _mesh(self, data: int) -> TriangleMesh:
        """Returns a mesh, with vertices of its own for every corner where it has coordinates."""
        model = self._model

        def rows(values: np.ndarray, begin: np.ndarray, count: np.ndarray) -> np.ndarray:
            return values[begin[data] : begin[data] + count[data]]

        vertices = rows(model.mesh_vert, model.mesh_vertadr, model.mesh_vertnum)
        faces = rows(model.mesh_face, model.mesh_faceadr, model.mesh_facenum)
        of_normals = rows(model.mesh_facenormal, model.mesh_faceadr, model.mesh_facenum)
        normals = rows(model.mesh_normal, model.mesh_normaladr, model.mesh_normalnum)
        uv = None
        if model.mesh_texcoordnum[data] > 0:
            places = rows(model.mesh_texcoord, model.mesh_texcoordadr, model.mesh_texcoordnum)
            of_places = rows(model.mesh_facetexcoord, model.mesh_faceadr, model.mesh_facenum)
            uv = places[of_places].reshape(-1, 2) * [1, -1] + [0, 1]
        if uv is not None or not np.array_equal(faces, of_normals):
            vertices, normals = (
                table[corner].reshape(-1, 3)
                for table, corner in ((vertices, faces), (normals, of_normals))
            )
            faces = np.arange(len(vertices)).reshape(-1, 3)
        with warnings.catch_warnings():
            # Faces without area, of which MuJoCo draws nothing either.
            warnings.filterwarnings("ignore", message="a TriangleMesh leaves out")
            return TriangleMesh(vertices, faces, normals, uv)

    # --- Cameras

    def cameras(self) -> dict[str, AbstractCamera]:
        """Returns the model's cameras by name, and the free one."""
        model = self._model
        names = unique_names(["free", *(self._name("CAMERA", i) for i in range(model.ncam))])
        cameras = {name: self._camera(number) for number, name in enumerate(names[1:])}
        return cameras | {"free": self._free()}

    def _limits(self) -> dict[str, float]:
        model = self._model
        limits = {"near": model.vis.map.znear, "far": model.vis.map.zfar}
        return {name: float(value * model.stat.extent) for name, value in limits.items()}

    def _camera(self, number: int) -> AbstractCamera:
        model, (width, height) = self._model, self._size
        fov = float(model.cam_fovy[number])
        frame, limits = CameraFrame(*_STILL, number), self._limits()
        if int(model.cam_projection[number]) == 1:
            # The angle is then the height of what is seen.
            return OrthographicCamera(frame, height / fov, width, height, **limits)
        sensor = model.cam_sensorsize[number]
        if np.all(sensor > 0):
            # Focal length and the shift of the axis, in lengths of the sensor; pixels are square.
            focal_x, focal_y, shift_x, shift_y = model.cam_intrinsic[number]
            focal = focal_y / sensor[1] * height
            center = [
                width / 2 - shift_x / sensor[0] * width,
                height / 2 + shift_y / sensor[1] * height,
            ]
            return PerspectiveCamera(
                frame, float(focal), width, height, principal_point=center, **limits
            )
        return PerspectiveCamera(frame, _focal(fov, height), width, height, **limits)

    def _free(self) -> AbstractCamera:
        """Returns the viewer's camera, as it begins."""
        model, (width, height) = self._model, self._size
        view = model.vis.global_
        azimuth, elevation = np.radians(view.azimuth), np.radians(view.elevation)
        ahead = np.array(
            [
                np.cos(elevation) * np.cos(azimuth),
                np.cos(elevation) * np.sin(azimuth),
                np.sin(elevation),
            ]
        )
        center, extent = np.asarray(model.stat.center), float(model.stat.extent)
        eye, fov = center - 1.5 * extent * ahead, float(view.fovy)
        fov_x = 2 * np.arctan(np.tan(np.radians(fov) / 2) * width / height)
        place = eye, center, [0.0, 0.0, 1.0]
        return PerspectiveCamera.look_at(*place, float(fov_x), width, height, **self._limits())

    # --- Lights

    def lights(self) -> dict[str, Any]:
        """Returns the model's lights by name, and an even one for headlight and ambient parts."""
        model, head = self._model, self._model.vis.headlight
        active = [i for i in range(model.nlight) if model.light_active[i]]
        names = unique_names(["even", *(self._name("LIGHT", i) for i in active)])[1:]
        lights = {name: self._light(i) for name, i in zip(names, active, strict=True)}
        even = sum((np.asarray(model.light_ambient[i]) for i in active), np.zeros(3))
        if head.active:
            even = even + head.ambient
        return lights | {"even": AmbientLight(as_light(even))}

    def _light(self, number: int) -> Transformed:
        model = self._model
        frame = LightFrame(
            *([0.0, 0.0, -1.0], [0.0, 0.0, 0.0]),
            mode=int(model.light_mode[number]),
            body=int(model.light_bodyid[number]),
            target=max(int(model.light_targetbodyid[number]), 0),
            place=model.light_pos[number],
            way=model.light_dir[number],
            offsets=np.stack(
                [model.light_pos0[number], model.light_poscom0[number], model.light_dir0[number]]
            ),
        )
        # A white surface that faces the light shows its diffuse colour.
        power = np.pi * as_light(model.light_diffuse[number])
        return Transformed(self._lamp(number, power), frame)

    def _lamp(self, number: int, power: np.ndarray) -> AbstractLight:
        model, ahead, here = self._model, [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]
        kind = int(model.light_type[number])
        if kind == _DIRECTIONAL:
            return DirectionalLight(ahead, power)
        away = np.asarray(self._start.light_xpos[number]) - np.asarray(model.stat.center)
        intensity = power * max(float(away @ away), 1e-6)
        if kind == _POINT:
            return PointLight(here, intensity)
        angle = np.radians(float(np.clip(model.light_cutoff[number], 1.0, 180.0)))
        # MuJoCo's cos^exponent is a soft edge; without an exponent it is sharp.
        softness = 1.0 if model.light_exponent[number] > 0 else 0.05
        return SpotLight(here, ahead, intensity, float(angle), softness)


def _focal(fov_y: float, height: int) -> float:
    """Returns the focal length in pixels of a vertical angle in degrees."""
    return height / 2 / float(np.tan(np.radians(fov_y) / 2))
