import os

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, PyTree
from ..io import FileError, read_archive, write_archive


def save_state(path: str | os.PathLike, state: PyTree) -> None:
    """Saves the arrays of a state: beside the file first, then renamed.

    **Arguments:**

    - `path`: of the file.
    - `state`: a `FitState`.
    """
    paths, arrays = _named_arrays(state)
    write_archive(path, {"leaves": paths}, [_to_numpy(array) for array in arrays])


def load_state(path: str | os.PathLike, like: PyTree) -> PyTree:
    """Loads a state into the shape of another.

    **Arguments:**

    - `path`: of the file.
    - `like`: a state of the same scene and optimiser, for its structure.

    **Returns:**

    The state.

    **Errors:**

    `FileError` for a damaged file, or one of another scene, with the first leaf that differs.
    """
    header, arrays = read_archive(path)
    paths, templates = _named_arrays(like)
    if header.get("leaves") != paths or len(arrays) != len(paths):
        odd = sorted(set(header.get("leaves") or []) ^ set(paths)) or ["their order"]
        raise FileError(f"{path} belongs to another scene: {odd[0]} differs.")
    for name, array, template in zip(paths, arrays, templates, strict=True):
        expected = _to_numpy(template)
        if array.shape != expected.shape or array.dtype != expected.dtype:
            raise FileError(
                f"{path} belongs to another scene: {name} has {array.dtype}{array.shape} there, "
                f"{expected.dtype}{expected.shape} here."
            )
    restored = iter([_from_numpy(a, t) for a, t in zip(arrays, templates, strict=True)])
    return jax.tree.map(lambda x: next(restored) if isinstance(x, jax.Array) else x, like)


def _named_arrays(state: PyTree) -> tuple[list[str], list[Array]]:
    named = jax.tree_util.tree_flatten_with_path(state)[0]
    arrays = [(jax.tree_util.keystr(keys), x) for keys, x in named if isinstance(x, jax.Array)]
    return [name for name, _ in arrays], [array for _, array in arrays]


def _is_key(array: Array) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def _to_numpy(array: Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(array) if _is_key(array) else array)


def _from_numpy(array: np.ndarray, template: Array) -> Array:
    data = jnp.asarray(array)
    return jax.random.wrap_key_data(data) if _is_key(template) else data
