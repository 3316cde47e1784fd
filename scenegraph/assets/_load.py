import os
import pathlib
import warnings

from ..models import read_model
from ..scene import Scene
from ._build import build_scene


# Formats whose y axis points upwards: in glTF by its specification, in OBJ by custom.
_Y_UP = (".gltf", ".glb", ".obj")


def load_scene(path: str | os.PathLike, *, y_up: bool | None = None) -> Scene:
    """Loads a scene of meshes from a glTF, OBJ, PLY or STL file.

    Nodes keep their hierarchy and names (a dot or a star becomes an underscore; of equal names, the
    second ends in `_2`). A node with a transform is a `Transformed`; a node that holds a camera or
    a light alone is that camera or light, where the file puts it. A mesh is a `Surface` of a
    `TriangleMesh`, or a `Group` of one for each of its materials. The z axis
    points upwards: files in which y does are turned, in the transforms of their top nodes.

    Materials become `GGX`, with base colour (a colour or an `ImageTexture`), metallic and
    roughness, normal map, emission and occlusion (numbers or textures); unlit ones become the base
    colour. Those with extensions (transmission, volume, ior, specular, clearcoat, sheen) become
    `Principled`, thin-walled unless they have a thickness. A material's opacity is the surface's
    where the alpha mode is `BLEND`; where it is `MASK`, the surface is there or not. A glTF file's
    meshes are seen from the front alone unless their material says `doubleSided`;
    `dataclasses.replace(mesh, two_sided=True)` shows their backs. What the library does not have is
    left out or replaced by its mean (of textures of metallic and roughness, and of opacity); this
    and all repairs are counted in one warning.

    The numbers of lights are kept: candela of point and spot lights are `intensity`, lux of
    directional lights `irradiance`. Pictures have the size that the file was exported with, or 512
    rows. OBJ and MTL: a texture replaces the colour `Kd`, which is linear; colours of vertices are
    sRGB, as in PLY; those of faces, and textures of faces' corners, make several vertices of one.
    Polygons with dents keep them. `EXT_mesh_gpu_instancing` becomes `Instances`.

    **Arguments:**

    - `path`: the path of a `.glb`, `.gltf`, `.obj`, `.ply` or `.stl` file. Files that it names are
      read from its folder or below, and from nowhere else; pictures that are not there are left
      out, and counted.
    - `y_up`: if true, the file's y axis points upwards, and its top nodes are turned so that z
      does; if false, axes are left as they are. By default true for glTF and OBJ, and false for PLY
      and STL. Keyword only argument.

    **Returns:**

    The scene: what the file holds. `frame_camera` and `add_lights` add a view and lights.

    **Errors:**

    `FileError` for a file that is missing, damaged, of another kind, without a surface, or whose
    arrays lie outside of its folder; `DamagedFile`, which is one, for a file that is cut or
    contradicts itself.

    Example:

    ```python
    scene = sg.assets.add_lights(sg.load_scene("teapot.glb"))
    image = sg.render(scene, sg.assets.frame_camera(scene))
    ```
    """
    turned = pathlib.Path(path).suffix.lower() in _Y_UP if y_up is None else y_up
    scene, notes = build_scene(read_model(path), y_up=turned)
    if notes:
        shown = "; ".join(notes[:20]) + (f"; and {len(notes) - 20} more" if len(notes) > 20 else "")
        warnings.warn(f"load_scene: {path}: repaired or left out: {shown}", stacklevel=2)
    return scene
