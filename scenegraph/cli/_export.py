import dataclasses
import operator
import pathlib
from typing import Annotated

import tyro

from ..settings import check_ranges, ranged
from ._console import say
from ._flags import optional, OptionalInt
from ._progress import track_frames


@dataclasses.dataclass(frozen=True)
class Export:
    """Write the surface of a fitted scene as a mesh or points; or a scene of meshes and shapes."""

    # The run folder, or a saved scene.
    run: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]

    # The file to be written: .glb keeps the tree, materials, textures, cameras and lights; .ply is
    # one mesh with colours of vertices.
    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]

    # The opacity, between 0 and 1, of a layer 1/64 of the bounds' longest side thick that is as
    # dense as a field's surface; of all of space, 1/50 of its unit. A lower level gives thicker
    # things.
    level: float = ranged(0.6, 0, 1, open=True)

    # The number of cells along the longest side of the field's bounds; by default twice that of its
    # finest grid, between 128 and 512, or 256 for other fields.
    resolution: OptionalInt = ranged(None, 2, 1024)

    # The largest number of triangles of a field's surface.
    faces: int = ranged(50_000, 4, 2**31 - 1)

    # The number of texels along the longer side of the texture.
    texture: int = ranged(1024, 16, 2**14)

    # Colours of vertices, instead of a texture.
    vertex_colors: bool = False

    # The bands, 1 to 4, of spherical harmonics by which the texture's colours change with the
    # direction from which they are seen; 1 for colours that do not. Other programs show the mean.
    view_bands: int = ranged(3, 1, 4)

    # The share of the largest part's size below which a part by itself is left out; 0 keeps all.
    min_part: float = ranged(0.01, 0, 1)

    # The corners of what is searched for a surface, x y z x y z in the volume's frame; by default
    # the volume's bounds.
    box: Annotated[
        tuple[float, float, float, float, float, float] | None, optional("X Y Z X Y Z")
    ] = ranged(None)

    # Write a .ply of the surface's points, with colours and normals.
    points: bool = False

    # Turn a .glb so that the scene's z axis points upwards in other programs, where y does; without
    # it, places in the file are those of the scene.
    z_up: bool = True

    # Steps that fit vertices and texture to the run's pictures, through the renderer; of a mesh of
    # 50,000 triangles each takes half a second, and two thousand are worth it.
    refine: int = ranged(0, 0, 2**31 - 1)

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)
        if self.box is not None and not all(map(operator.lt, self.box[:3], self.box[3:])):
            raise ValueError(
                "--box must be two corners x y z x y z, the first below the second; got "
                f"{' '.join(f'{x:g}' for x in self.box)}."
            )
        if self.refine and self.run.is_file():
            raise ValueError(
                "--refine is a number of steps that fit the mesh to the pictures of a run folder; "
                f"got {self.refine} for {self.run}."
            )

    def main(self) -> None:
        """Makes the mesh, and writes it."""
        from ..fitting import Console
        from ..meshing import export_scene, MeshOptions
        from ..runs import export_run, open_run
        from ..scene import load_whole

        texture = None if self.vertex_colors else self.texture
        options = MeshOptions(
            self.level,
            self.resolution,
            self.faces,
            texture,
            self.min_part,
            self.box,
            self.view_bands,
        )
        track = track_frames(description="evaluating")
        if self.run.is_file():
            export_scene(
                load_whole(self.run),
                self.out,
                options,
                points=self.points,
                z_up=self.z_up,
                track=track,
                say=say,
            )
        else:
            run = open_run(self.run)
            export_run(
                run,
                self.out,
                options,
                points=self.points,
                z_up=self.z_up,
                refine=self.refine,
                callbacks=[Console(every=max(self.refine // 20, 1))],
                track=track,
                say=say,
            )
        say(f"wrote {self.out}")
