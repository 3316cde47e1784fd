"""A ball becomes a cow: 16 small pictures say where vertices are: `python mesh_from_pictures.py`.

The cow is `models/spot` in the folder that SCENEGRAPH_DATA names, by Keenan Crane (CC0); any other
mesh is an argument, `--mesh model.glb`, and without either a ball with bumps is found.
"""

import os
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from scipy import spatial

import scenegraph as sg


LAMPS = {
    "red": ([-1.0, -0.5, -0.5], [2.0, 0.2, 0.2]),
    "green": ([0.5, -1.0, 0.5], [0.2, 2.0, 0.2]),
    "blue": ([0.5, 0.5, -1.0], [0.2, 0.2, 2.0]),
}


def icosphere(splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a ball of radius one, of `20 * 4**splits` triangles."""
    golden = (1 + 5**0.5) / 2
    corners = [(0, a, b) for a in (1, -1) for b in (golden, -golden)]
    vertices = np.array([np.roll(corner, k) for k in range(3) for corner in corners])
    faces = spatial.ConvexHull(vertices).simplices
    inward = np.linalg.det(vertices[faces]) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces)
    for _ in range(splits):
        vertices, faces = split(vertices, faces)
    return vertices / np.linalg.norm(vertices, axis=1, keepdims=True), faces


def split(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits every triangle into four, at the middles of its edges."""
    sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    pairs, which = np.unique(sides, axis=0, return_inverse=True)
    (a, b, c), (ab, bc, ca) = faces.T, which.reshape(-1, 3).T + len(vertices)
    parts = [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
    middles = vertices[pairs].mean(axis=1)
    return np.concatenate([vertices, middles]), np.moveaxis(np.array(parts), 1, 2).reshape(-1, 3)


def target(path: pathlib.Path | None) -> sg.TriangleMesh:
    """The mesh that is to be found, between -1 and 1."""
    spot = pathlib.Path(os.environ.get("SCENEGRAPH_DATA", "."), "models", "spot", "spot.obj")
    path = spot if path is None and spot.exists() else path
    if path is None:
        vertices, faces = icosphere(4)
        bumps = 0.75 + 0.25 * np.sin(4 * vertices).mean(axis=1, keepdims=True)
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


def draw(scene: sg.Scene, camera: sg.PerspectiveCamera) -> jax.Array:
    """Colours, and opacities thrice, so that they count as much."""
    image = sg.render(scene, camera)
    assert image.alpha is not None
    return jnp.stack([image.rgb, jnp.broadcast_to(image.alpha[..., None], image.rgb.shape)])


class Pictures(eqx.Module):
    """Batches of some pictures with their cameras, stacked."""

    cameras: sg.PerspectiveCamera
    drawn: jax.Array

    def __init__(self, scene: sg.Scene, cameras: list[sg.PerspectiveCamera]):
        self.cameras = jax.tree.map(lambda *x: jnp.stack(x), *cameras)
        self.drawn = jnp.stack([draw(scene, camera) for camera in cameras])

    def batch(self, seed: jax.Array, step: jax.Array) -> "Pictures":
        """Takes every second picture, in turn."""
        del seed
        some = step % 2 + 2 * jnp.arange(len(self.drawn) // 2)
        return jax.tree.map(lambda x: x[some], self)


def mismatch(scene: sg.Scene, state: None, batch: Pictures, key: jax.Array) -> tuple:
    """The mean squared error of colours and opacities."""
    del key
    drawn = jax.lax.map(lambda camera: draw(scene, camera), batch.cameras)
    return jnp.mean((drawn - batch.drawn) ** 2), state


def fit(
    mesh: sg.TriangleMesh, pictures: Pictures, steps: int, rate: float, smoothness: float
) -> sg.TriangleMesh:
    """Moves vertices in large steps, and in small ones at last."""
    edges = sg.losses.mesh_edges(mesh.faces)
    result = sg.fit(
        shaded(mesh),
        pictures,
        trainable="model.shape.vertices",
        optimizer=optax.chain(
            sg.optimizers.large_steps(edges, rate, smoothness=smoothness),
            optax.scale_by_schedule(optax.cosine_decay_schedule(1.0, steps, 0.1)),
        ),
        loss=mismatch,
        steps=steps,
        key=jax.random.key(0),
        callbacks=[sg.Console(every=50)],
    )
    return result.scene["model.shape"]


def chamfer(one: sg.TriangleMesh, other: sg.TriangleMesh) -> float:
    """The mean distance of points on either mesh to the nearest one on the other, both added."""
    there = lambda a, b: spatial.KDTree(points_on(b, 200_000)).query(points_on(a, 5_000))[0].mean()
    return float(there(one, other) + there(other, one))


def points_on(mesh: sg.TriangleMesh, count: int) -> np.ndarray:
    """Random points, evenly over the area."""
    rng = np.random.default_rng(count)
    a, b, c = np.moveaxis(np.asarray(mesh.vertices)[np.asarray(mesh.faces)], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    face = rng.choice(len(area), count, p=area / area.sum())
    u, v = np.sort(rng.uniform(size=(2, count, 1)), axis=0)
    return u * a[face] + (v - u) * b[face] + (1 - v) * c[face]


def main(
    steps: int = 200,
    mesh: pathlib.Path | None = None,
    size: int = 64,
    out: str = "mesh_from_pictures.png",
) -> float:
    """Fits a coarse ball, then four times as many triangles; returns how much nearer they are."""
    truth, ball = target(mesh), sg.TriangleMesh(*icosphere(3))
    pictures = Pictures(shaded(truth), around(16, size))
    coarse = fit(ball, pictures, steps, rate=0.5, smoothness=10.0)
    finer = split(np.asarray(coarse.vertices), np.asarray(coarse.faces))
    found = fit(sg.TriangleMesh(*finer), pictures, steps, rate=0.2, smoothness=8.0)
    shown = [sg.render(shaded(x), around(5, 3 * size)[2]) for x in (truth, ball, coarse, found)]
    sg.io.write_picture(out, sg.images.side_by_side(shown))
    distances = [chamfer(x, truth) for x in (ball, coarse, found)]
    print("Chamfer distance:", *(f"{x:.4f}" for x in distances))
    return distances[0] / distances[2]


if __name__ == "__main__":
    tyro.cli(main)
