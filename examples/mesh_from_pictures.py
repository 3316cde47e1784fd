"""A ball becomes a cow: vertices are found from 16 shaded pictures: `python mesh_from_pictures.py`.

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


def icosphere(level: int) -> tuple[np.ndarray, np.ndarray]:
    """A ball of `20 * 4**level` triangles."""
    golden = (1 + 5**0.5) / 2
    corners = [(0, 1, golden), (0, -1, golden), (0, 1, -golden), (0, -1, -golden)]
    vertices = np.array([np.roll(c, k) for k in range(3) for c in corners], float)
    edge = lambda a, b: np.isclose(np.linalg.norm(vertices[a] - vertices[b]), 2)
    faces = [
        (a, b, c)
        for a in range(12)
        for b in range(a)
        for c in range(b)
        if edge(a, b) and edge(b, c) and edge(a, c)
    ]
    turned = lambda f: f if np.linalg.det(vertices[list(f)]) > 0 else f[::-1]
    faces = np.array([turned(f) for f in faces])
    for _ in range(level):
        sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        pairs, which = np.unique(sides, axis=0, return_inverse=True)
        middle = which.reshape(-1, 3) + len(vertices)
        (a, b, c), (ab, bc, ca) = faces.T, middle.T
        vertices = np.concatenate([vertices, vertices[pairs].mean(axis=1)])
        faces = np.stack([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]])
        faces = np.moveaxis(faces, 1, 2).reshape(-1, 3)
    return vertices / np.linalg.norm(vertices, axis=1, keepdims=True), faces


def target() -> sg.TriangleMesh:
    """The mesh that is to be found, between -1 and 1."""
    data = os.environ.get("SCENEGRAPH_DATA")
    path = pathlib.Path(data or ".", "models", "spot", "spot.obj")
    if data is None or not path.exists():
        vertices, faces = icosphere(4)
        bumps = 0.75 + 0.15 * np.sin(4 * vertices).sum(axis=1, keepdims=True) / 3
        return sg.TriangleMesh(bumps * vertices, faces)
    mesh = next(x.shape for x in sg.load_scene(path).root.children.values())
    middle = (mesh.vertices.max(axis=0) + mesh.vertices.min(axis=0)) / 2
    placed = (mesh.vertices - middle) / jnp.max(jnp.abs(mesh.vertices - middle))
    return sg.TriangleMesh(placed, mesh.faces)


def make(mesh: sg.TriangleMesh) -> sg.Scene:
    """A white mesh under three lamps of different colours, so that shading tells directions."""
    lamps = {
        name: sg.DirectionalLight(direction, color, 0.0)
        for name, direction, color in [
            ("red", [-1.0, -0.5, -0.5], [2.0, 0.2, 0.2]),
            ("green", [0.5, -1.0, 0.5], [0.2, 2.0, 0.2]),
            ("blue", [0.5, 0.5, -1.0], [0.2, 0.2, 2.0]),
        ]
    }
    white = sg.Lambert([0.8, 0.8, 0.8])
    return sg.Scene(
        sg.Group(model=sg.Surface(mesh, white), sky=sg.AmbientLight([0.3] * 3), **lamps)
    )


def cameras(count: int, size: int) -> list[sg.PerspectiveCamera]:
    """Cameras evenly around, on a spiral from above to below."""
    height = 0.9 - 1.8 * (np.arange(count) + 0.5) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    ring = np.sqrt(1 - height**2)
    eyes = 4 * np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=1)
    look = sg.PerspectiveCamera.look_at
    return [look(list(eye), [0.0] * 3, [0.0, 1, 0], 0.6, size, size) for eye in eyes]


class Pictures(eqx.Module):
    """One picture a step, with its camera."""

    cameras: sg.PerspectiveCamera  # stacked
    rgb: jax.Array

    def batch(self, seed: jax.Array, step: jax.Array) -> tuple[sg.PerspectiveCamera, jax.Array]:
        """Takes the pictures in turn."""
        del seed
        number = step * 5 % len(self.rgb)
        return jax.tree.map(lambda x: x[number], self.cameras), self.rgb[number]


def chamfer(mesh: sg.TriangleMesh, truth: sg.TriangleMesh) -> float:
    """The mean distance from points on either surface to the other one, both ways."""
    first, second = points_on(mesh), points_on(truth)
    there, back = spatial.KDTree(second).query(first)[0], spatial.KDTree(first).query(second)[0]
    return float(there.mean() + back.mean())


def points_on(mesh: sg.TriangleMesh, count: int = 50_000) -> np.ndarray:
    """Random points, evenly over the area."""
    rng = np.random.default_rng(0)
    a, b, c = np.moveaxis(np.asarray(mesh.vertices)[np.asarray(mesh.faces)], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    face = rng.choice(len(area), count, p=area / area.sum())
    u, v = np.sort(rng.uniform(size=(2, count, 1)), axis=0)
    return u * a[face] + (v - u) * b[face] + (1 - v) * c[face]


def main(
    steps: int = 400, level: int = 3, size: int = 64, out: str = "mesh_from_pictures.png"
) -> None:
    """Fits the vertices of a ball, and writes truth, start and result side by side."""
    truth, (vertices, faces) = target(), icosphere(level)
    start = make(sg.TriangleMesh(0.6 * vertices, faces))
    eyes = cameras(16, size)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *eyes)
    pictures = Pictures(stacked, jnp.stack([sg.render(make(truth), eye).rgb for eye in eyes]))
    edges = sg.losses.mesh_edges(jnp.asarray(faces))

    def loss(scene: sg.Scene, state: None, batch: tuple, key: jax.Array) -> tuple:
        del key
        camera, rgb = batch
        mesh = scene["model.shape"]
        rough = sg.losses.laplacian_roughness(mesh.vertices, edges)
        return jnp.mean((sg.render(scene, camera).rgb - rgb) ** 2) + 0.5 * rough, state

    rate = 1e-2 if steps < 10 else 2e-2
    result = sg.fit(
        start,
        pictures,
        trainable="model.shape.vertices",
        optimizer=sg.fitting.large_steps(edges, rate),
        loss=loss,
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=50)],
    )
    eye = cameras(5, 3 * size)[2]
    scenes = [make(truth), start, result.scene]
    sg.io.write_picture(out, sg.images.side_by_side([sg.render(x, eye) for x in scenes]))
    before, after = (chamfer(x["model.shape"], truth) for x in (start, result.scene))
    print(f"Chamfer distance: {before:.4f}, then {after:.4f}: {before / after:.1f} times less")


if __name__ == "__main__":
    tyro.cli(main)
