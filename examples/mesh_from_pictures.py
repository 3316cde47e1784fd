"""A ball becomes a cow: vertices are found from 16 shaded pictures.

The cow is `models/spot` in the folder that SCENEGRAPH_DATA names, by Keenan Crane (CC0); without
it, a ball with bumps is found.
"""

import os
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from scipy import spatial

import scenegraph as sg


LAMPS = {
    "red": ([-1.0, -0.5, -0.5], [2.0, 0.2, 0.2]),
    "green": ([0.5, -1.0, 0.5], [0.2, 2.0, 0.2]),
    "blue": ([0.5, 0.5, -1.0], [0.2, 0.2, 2.0]),
}


def icosphere(level: int) -> tuple[np.ndarray, np.ndarray]:
    """A ball of `20 * 4**level` triangles."""
    golden = (1 + 5**0.5) / 2
    corners = [(0, a, b) for a in (1, -1) for b in (golden, -golden)]
    vertices = np.array([np.roll(c, k) for k in range(3) for c in corners], float)
    # Neighbours among the corners of an icosahedron are 2 apart.
    near = spatial.distance.cdist(vertices, vertices) < 2.1
    ordered = [(a, b, c) for a in range(12) for b in range(a) for c in range(b)]
    found = np.array(
        [f for f in ordered if near[f[0], f[1]] and near[f[1], f[2]] and near[f[0], f[2]]]
    )
    inward = np.linalg.det(vertices[found]) < 0
    faces = np.where(inward[:, None], found[:, ::-1], found)
    for _ in range(level):
        sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        pairs, which = np.unique(sides, axis=0, return_inverse=True)
        (a, b, c), (ab, bc, ca) = faces.T, which.reshape(-1, 3).T + len(vertices)
        vertices = np.concatenate([vertices, vertices[pairs].mean(axis=1)])
        parts = [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
        faces = np.moveaxis(np.array(parts), 1, 2).reshape(-1, 3)
    return vertices / np.linalg.norm(vertices, axis=1, keepdims=True), faces


def target() -> sg.TriangleMesh:
    """The mesh that is to be found, between -1 and 1."""
    path = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."), "models", "spot", "spot.obj")
    if not path.exists():
        vertices, faces = icosphere(4)
        bumps = 0.75 + 0.15 * np.sin(4 * vertices).sum(axis=1, keepdims=True) / 3
        return sg.TriangleMesh(bumps * vertices, faces)
    mesh = next(x.shape for x in sg.load_scene(path).root.children.values())
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    placed = (mesh.vertices - (low + high) / 2) / jnp.max(high - low) * 2
    return sg.TriangleMesh(placed, mesh.faces)


def shaded(mesh: sg.TriangleMesh) -> sg.Scene:
    """A white mesh under lamps of three colours, so that shading tells directions."""
    lamps = {name: sg.DirectionalLight(*lamp) for name, lamp in LAMPS.items()}
    model = sg.Surface(mesh, sg.Lambert([0.8, 0.8, 0.8]))
    root = sg.Group(model=model, sky=sg.AmbientLight([0.3, 0.3, 0.3]), **lamps)
    return sg.Scene(root, integrator=sg.Surfaces(4, shadows=False))


def around(count: int, size: int) -> list[sg.PerspectiveCamera]:
    """Cameras evenly around, on a spiral from above to below."""
    height = 0.9 - 1.8 * (np.arange(count) + 0.5) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    ring = np.sqrt(1 - height**2)
    eyes = 4 * np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=1)
    look = sg.PerspectiveCamera.look_at
    return [look(list(eye), [0.0] * 3, [0.0, 1, 0], 0.6, size, size) for eye in eyes]


class Pictures(eqx.Module):
    """Batches of one picture with its camera."""

    cameras: sg.PerspectiveCamera  # stacked
    rgb: jax.Array

    def batch(self, seed: jax.Array, step: jax.Array) -> tuple[sg.PerspectiveCamera, jax.Array]:
        """Takes the pictures in turn."""
        del seed
        number = step * 5 % len(self.rgb)
        return jax.tree.map(lambda x: x[number], self.cameras), self.rgb[number]


def chamfer(one: sg.TriangleMesh, other: sg.TriangleMesh) -> float:
    """The mean distance from points on either surface to the other one, both ways."""
    a, b = points_on(one, 0), points_on(other, 1)
    there, back = spatial.KDTree(b).query(a)[0], spatial.KDTree(a).query(b)[0]
    return float(there.mean() + back.mean())


def points_on(mesh: sg.TriangleMesh, seed: int, count: int = 200_000) -> np.ndarray:
    """Random points, evenly over the area."""
    rng = np.random.default_rng(seed)
    a, b, c = np.moveaxis(np.asarray(mesh.vertices)[np.asarray(mesh.faces)], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    face = rng.choice(len(area), count, p=area / area.sum())
    u, v = np.sort(rng.uniform(size=(2, count, 1)), axis=0)
    return u * a[face] + (v - u) * b[face] + (1 - v) * c[face]


def main(
    steps: int = 300, level: int = 3, size: int = 64, out: str = "mesh_from_pictures.png"
) -> None:
    """Fits the vertices of a ball, and writes truth, start and result side by side."""
    truth, (vertices, faces) = target(), icosphere(level)
    start = shaded(sg.TriangleMesh(0.6 * vertices, faces))
    cameras = around(16, size)
    rgb = jnp.stack([sg.render(shaded(truth), camera).rgb for camera in cameras])
    pictures = Pictures(jax.tree.map(lambda *x: jnp.stack(x), *cameras), rgb)
    edges = sg.losses.mesh_edges(jnp.asarray(faces))

    def loss(scene: sg.Scene, state: None, batch: tuple, key: jax.Array) -> tuple:
        del key
        camera, rgb = batch
        return jnp.mean((sg.render(scene, camera).rgb - rgb) ** 2), state

    result = sg.fit(
        start,
        pictures,
        trainable="model.shape.vertices",
        optimizer=sg.fitting.large_steps(edges, 2e-2),
        loss=loss,
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=25)],
    )
    scenes, camera = [shaded(truth), start, result.scene], around(5, 3 * size)[2]
    shown = [sg.render(scene, camera) for scene in scenes]
    sg.io.write_picture(out, sg.images.side_by_side(shown))
    before, after = (chamfer(x["model.shape"], truth) for x in (start, result.scene))
    print(f"Chamfer distance: {before:.4f}, then {after:.4f}: {before / after:.1f} times less")


if __name__ == "__main__":
    tyro.cli(main)
