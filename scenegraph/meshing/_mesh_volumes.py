"""Scenes whose volumes become meshes."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._typing import ArrayLike
from ..assets import copies, matrix_of
from ..flat import color_space
from ..images import Linear, SRGB
from ..scene import Group, Instances, open_scene, Scene, Surface, Transformed, Volume
from ..shaders import Constant, ImageTexture, VertexColor, ViewDependent
from ..shapes import TriangleMesh
from ._atlas import covered_texels, spread, unwrap
from ._colors import Seen, surface_colors
from ._occlusion import are_seen, solid_cells
from ._opacity_grid import measure_opacity, OpacityGrid, Track
from ._options import MeshOptions
from ._surface import find_surface, simplify, Triangles, without_details, without_hidden
from ._view_terms import view_texture


def mesh_volumes(
    scene: Scene,
    options: MeshOptions = MeshOptions(),
    *,
    viewpoints: ArrayLike | None = None,
    track: Track = iter,
    say: Callable[[str], Any] = lambda text: None,
) -> Scene:
    """Replaces the volumes of a scene by coloured meshes of their surfaces.

    The density is evaluated on a grid, averaged over its cells; hollows that nobody sees are filled
    and small parts left out; marching cubes give the surface, which is simplified, cut into charts
    and coloured by the field, composited over a few cells along the normal. As seen from several
    viewpoints, its colours are a `ViewDependent`: their means, and how they change with the view.

    The numbers of the colours are those of the scene: a mesh stands for a volume in a picture, and
    its vertices and texels can be fitted (`field.shape.vertices`, `field.shader.base.texels`).

    **Arguments:**

    - `scene`: the scene. Its surfaces, lights and cameras stay; `Instances` of a volume become a
      `Group` of copies; nothing is frozen or tied afterwards.
    - `options`: the settings.
    - `viewpoints`: places in the world, `n 3`, such as those of the cameras of the pictures: the
      colour of a point is its mean as seen from those that nothing hides it from; where all of
      space is contracted, faces that all of them are hidden from are left out. By default, every
      point is seen along its normal. Keyword only, as is all that follows.
    - `track`: an iterator over blocks of work, which may show progress.
    - `say`: a function that is called with messages.

    **Returns:**

    The scene of surfaces.

    **Errors:**

    `ValueError` if there is no surface at that level, an occupancy is empty, or a volume has no
    bounds and there is no `box`; `MissingExtra` if a package of the extra `mesh` is missing.

    **Source:** Lewiner et al. 2003, "Efficient implementation of marching cubes' cases with
    topological guarantees"; Garland and Heckbert 1997, "Surface simplification using quadric error
    metrics".
    """
    options.require_packages()
    places = None if viewpoints is None else np.asarray(viewpoints, float)
    opened = open_scene(scene)
    lit = isinstance(color_space(opened), Linear)
    maker = _Maker(options, places, track, say, lit)
    return Scene(
        maker.node(opened.root, np.eye(4)),
        background=opened.background,
        integrator=None,
    )


class _Maker:
    """Makes the nodes of the new scene."""

    def __init__(
        self,
        options: MeshOptions,
        viewpoints: np.ndarray | None,
        track: Track,
        say: Callable[[str], Any],
        lit: bool,
    ):
        self.options, self.viewpoints, self.track, self.say = options, viewpoints, track, say
        self.lit = lit

    def node(self, node: Any, matrix: np.ndarray) -> Any:
        """Returns a node with meshes; `matrix` is the world from it."""
        if isinstance(node, Volume):
            return self.surface(node, matrix)
        if isinstance(node, Transformed):
            inside = self.node(node.child, matrix @ matrix_of(node.transform))
            return Transformed(inside, node.transform)
        if isinstance(node, Group):
            return Group(**{name: self.node(x, matrix) for name, x in node.children.items()})
        if isinstance(node, Instances) and has_volumes(node.child):
            made = [self.node(copy, matrix) for copy in copies(node)]
            return Group(**{f"copy_{number}": copy for number, copy in enumerate(made)})
        return node

    def surface(self, volume: Volume, matrix: np.ndarray) -> Surface:
        """Makes the mesh of a volume, in the volume's frame."""
        grid = measure_opacity(volume, self.options, self.track)
        grid = without_details(grid, self.options)
        found = find_surface(grid, self.options.level)
        places = self._viewpoints_in(matrix)
        if volume.contraction is not None and places is not None:
            # All of space has no outside: what is behind walls, and below the ground, is not known.
            seen = are_seen(grid, found.vertices, found.normals, places)
            found = without_hidden(found, seen) if seen.any() else found
        mesh = simplify(found, grid, self.options.faces)
        self.say(
            f"grid of {' x '.join(map(str, grid.opacity.shape))} cells, {grid.width:.4g} wide: "
            f"{len(found.faces)} triangles at density "
            f"{-np.log1p(-self.options.level) / grid.thickness:.4g}, {len(mesh.faces)} kept"
        )
        if self.options.texture is None:
            seen = self._seen(volume, mesh.vertices, mesh.normals, grid, matrix)
            colors = self._lit(volume, surface_colors(seen, self.track))
            shape = TriangleMesh(mesh.vertices, mesh.faces, colors=colors)
            return Surface(shape, VertexColor(Constant([1.0, 1.0, 1.0])))
        return self._textured(volume, mesh, self.options.texture, grid, matrix)

    def _textured(
        self, volume: Volume, mesh: Triangles, size: int, grid: OpacityGrid, matrix: np.ndarray
    ) -> Surface:
        atlas = unwrap(mesh, size)
        texels = covered_texels(atlas)
        corners = atlas.mesh.faces[texels.face]
        at = lambda values: np.einsum("nc,nck->nk", texels.weights, values[corners])
        points, normals = at(atlas.mesh.vertices), at(atlas.mesh.normals)
        seen = self._seen(volume, points, normals, grid, matrix)
        covered = np.zeros((atlas.height, atlas.width), bool)
        covered[texels.row, texels.column] = True
        self.say(f"texture of {atlas.width} x {atlas.height}, {covered.mean():.0%} covered")

        def as_texture(colors: np.ndarray) -> ImageTexture:
            picture = np.zeros((*covered.shape, 3), np.float32)
            picture[texels.row, texels.column] = self._lit(volume, colors)
            return ImageTexture(jnp.asarray(spread(picture, covered)), corner=(0.0, 0.0))

        shape = TriangleMesh(atlas.mesh.vertices, atlas.mesh.faces, uv=atlas.uv)
        bands = 1 if seen.viewpoints is None else self.options.view_bands
        if bands == 1:
            return Surface(shape, as_texture(surface_colors(seen, self.track)))
        found = view_texture(seen, texels, covered.shape, bands, self.track)
        # Terms are of the field's own numbers.
        encoded = self.lit and isinstance(volume.space, SRGB)
        return Surface(shape, ViewDependent(as_texture(found.colors), found.terms, encoded))

    def _seen(
        self,
        volume: Volume,
        points: np.ndarray,
        normals: np.ndarray,
        grid: OpacityGrid,
        matrix: np.ndarray,
    ) -> Seen:
        cells, places = solid_cells(grid, self.options.level), self._viewpoints_in(matrix)
        return Seen(volume, points, normals, cells, places)

    def _viewpoints_in(self, matrix: np.ndarray) -> np.ndarray | None:
        """Returns the viewpoints in the frame that a matrix leads from."""
        if self.viewpoints is None:
            return None
        back = np.linalg.inv(matrix)
        return self.viewpoints @ back[:3, :3].T + back[:3, 3]

    def _lit(self, volume: Volume, colors: np.ndarray) -> np.ndarray:
        """Returns colours of a field as the scene's numbers."""
        return np.asarray(volume.space.to_linear(jnp.asarray(colors))) if self.lit else colors


def has_volumes(node: Any) -> bool:
    """Returns true if there is a volume at or below a node without wrappers."""
    if isinstance(node, Volume):
        return True
    if isinstance(node, Transformed | Instances):
        return has_volumes(node.child)
    return isinstance(node, Group) and any(map(has_volumes, node.children.values()))
