"""The hierarchy of a glTF file: transforms, and copies of one mesh."""

from collections import Counter

import numpy as np

from ..io import FileError
from ._fields import Fields
from ._gltf_buffers import Buffers
from ._model import ModelNode


_DEEPEST = 64
# Single precision has no inverse of a matrix whose axes are scaled more unequally.
_MOST_UNEQUAL = 1e7
# A matrix is as good as singular if its volume is this part of the product of its axes' lengths.
_FLAT = 1e-6
INSTANCING = "EXT_mesh_gpu_instancing"
_PARTS = ("TRANSLATION", "ROTATION", "SCALE")


def check_tree(nodes: tuple[ModelNode, ...], roots: tuple[int, ...], where: str) -> None:
    """Refuses towers of nodes, circles, and nodes that the scene shows twice.

    What lies outside of the scene, such as another parent of a node, does not count.
    """
    seen, level, depth = set[int](), list(roots), 0
    while level:
        depth += 1
        twice = [i for i, count in Counter(level).items() if count > 1 or i in seen]
        if twice:
            raise FileError(
                f"{where}: nodes[{twice[0]}] has two places in the hierarchy, which must be a tree."
            )
        if depth > _DEEPEST:
            raise FileError(f"{where}: nodes lie in each other more than {_DEEPEST} deep.")
        seen.update(level)
        level = [child for i in level for child in nodes[i].children]


def node_matrix(node: Fields) -> np.ndarray:
    """Returns parent from node: a matrix by columns, or shift, rotation and scale."""
    if not node.value.keys() & {"matrix", "translation", "rotation", "scale"}:
        return np.eye(4)
    matrix = _matrix(node)
    # In single precision, as it will be kept; what is scaled to nothing is left out later.
    linear = np.float32(matrix[:3, :3])
    if not is_singular(matrix) and not np.linalg.cond(linear) < _MOST_UNEQUAL:
        scales = np.linalg.svd(matrix[:3, :3], compute_uv=False)
        raise FileError(
            f"{node.where} ({node.text('name')[:40]!r}) is scaled by {scales[0]:.3g} along "
            f"one axis and by {scales[2]:.3g} along another; their ratio must be below "
            f"{_MOST_UNEQUAL:g}."
        )
    return matrix


def is_singular(matrix: np.ndarray) -> bool:
    """Returns true for a matrix that squashes things flat, as animations hide them."""
    lengths = np.linalg.norm(matrix[:3, :3], axis=0)
    product = float(np.prod(lengths))
    # Single precision holds neither the determinant nor its inverse beyond these.
    if not 1e-30 < product < 1e30 or not np.all((lengths > 1e-10) & (lengths < 1e10)):
        return True
    return bool(abs(np.linalg.det(matrix[:3, :3])) <= _FLAT * product)


def _matrix(node: Fields) -> np.ndarray:
    if "matrix" in node:
        matrix = node.numbers("matrix", [0.0] * 16).reshape(4, 4).T
        if not np.allclose(matrix[3], [0, 0, 0, 1], atol=1e-6):
            raise FileError(f"{node.at('matrix')} must have the last row 0, 0, 0, 1.")
        return matrix
    shift, scale = node.numbers("translation", [0.0] * 3), node.numbers("scale", [1.0] * 3)
    quaternion = node.numbers("rotation", [0.0, 0.0, 0.0, 1.0])
    if not np.linalg.norm(quaternion) > 1e-6:
        raise FileError(f"{node.at('rotation')} must not be zero.")
    return matrices_of(shift[None], quaternion[None], scale[None])[0]


def matrices_of(shifts: np.ndarray, quaternions: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Returns matrices `n 4 4` of shifts `n 3`, quaternions xyzw `n 4` and scales `n 3`."""
    x, y, z, w = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    # R(q), of a unit quaternion
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    rotations = np.moveaxis(np.array(rows), 2, 0)
    # T R S: scaled, turned, shifted.
    matrices = np.tile(np.eye(4), (len(shifts), 1, 1))
    matrices[:, :3, :3], matrices[:, :3, 3] = rotations * scales[:, None], shifts
    return matrices


def read_copies(node: Fields, buffers: Buffers, left_out: Counter[str]) -> np.ndarray | None:
    """Returns the matrices `n 4 4` of a node's copies of its mesh; `None` for a single one."""
    if INSTANCING not in node.object("extensions"):
        return None
    attributes = node.object("extensions").object(INSTANCING).object("attributes")
    for name in sorted(set(attributes.value) - set(_PARTS)):
        left_out[f"{name[:60]} of the copies of a node"] += 1
    found = {}
    for name, kind in zip(_PARTS, ("VEC3", "VEC4", "VEC3"), strict=True):
        index = attributes.index(name, len(buffers.accessors), "accessors")
        if index is not None:
            found[name] = buffers.array(index, (kind,)).astype(np.float64)
    counts = {len(array) for array in found.values()}
    if len(counts) != 1:
        raise FileError(
            f"{attributes.where} must have {', '.join(_PARTS)}, or some of them, of one length; "
            f"the lengths are {sorted(counts)}."
        )
    count = counts.pop()
    buffers.spend(128 * count, attributes)
    whole = {"TRANSLATION": [0.0] * 3, "ROTATION": [0.0, 0.0, 0.0, 1.0], "SCALE": [1.0] * 3}
    parts = [found.get(name, np.tile(value, (count, 1))) for name, value in whole.items()]
    if not all(np.all(np.abs(part) <= 1e18) for part in parts):
        raise FileError(f"{attributes.where} has numbers that are not finite.")
    # Single precision holds no inverse of others.
    sizes = np.abs(parts[2])
    is_there = np.all((sizes > 1e-10) & (sizes < 1e10), axis=1)
    is_there &= np.min(sizes, axis=1) > 1e-6 * np.max(sizes, axis=1)
    is_there &= np.linalg.norm(parts[1], axis=1) > 1e-6
    left_out["copy scaled to nothing, or to a needle"] += int(np.sum(~is_there))
    return matrices_of(*(part[is_there] for part in parts))
