"""One file with all of a fit's state, from which the scene can be loaded alone."""

import dataclasses
import itertools
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, PyTree
from ..fitting import FitState, shared_keys
from ..io import DamagedFile, FileError, read_archive, write_archive
from ..scene import check_format, label_leaves, tree_header, versions, written_by


# The largest number of differing leaves that a message names; it counts the others.
_NAMED = 6
_MODEL = "model: "
# Paths of leaves in files of earlier versions.
_RENAMED = {".key": ".keys", ".room": ".budget", ".extra.asked": ".extra.requested"}


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A state in the host's memory, which no later step can change, ready to be written."""

    state: FitState  # with numpy arrays; keys are their data
    leaves: list[tuple[str, str, list[int]]]  # path, type and shape of every array
    arrays: list[np.ndarray]  # of the state, in the order of `leaves`

    def write(self, path: str | os.PathLike, **about: Any) -> None:
        """Writes a temporary file, and renames it; `about` is remembered in it as JSON."""
        arrays: list[np.ndarray] = []
        header = self._header(arrays)
        known = {id(array) for array in arrays}
        arrays += [array for array in self.arrays if id(array) not in known]
        place = {id(array): index for index, array in enumerate(arrays)}
        leaves = [[*leaf, place[id(x)]] for leaf, x in zip(self.leaves, self.arrays, strict=True)]
        write_archive(path, {**header, "about": about, "leaves": leaves}, arrays)

    def _header(self, arrays: list[np.ndarray]) -> dict[str, Any]:
        """Returns the header, with the scene if the model is one that can be saved."""
        names = [kind for path, kind, _ in self.leaves if path.startswith(_MODEL)]
        if any(kind.startswith("key<") for kind in names):
            return versions()
        try:
            return tree_header(self.state.model, arrays)
        except TypeError:
            arrays.clear()
            return versions()


def take_snapshot(state: FitState) -> Snapshot:
    """Copies a state from the device."""
    for leaf in _arrays(state):
        leaf.copy_to_host_async()
    arrays = [np.array(jax.random.key_data(x) if _is_key(x) else x) for x in _arrays(state)]
    return Snapshot(_with_arrays(state, arrays), _describe(state), arrays)


def save_state(path: str | os.PathLike, state: FitState, **about: Any) -> None:
    """Saves all of a fit: to a temporary file, which is then renamed.

    **Arguments:**

    - `path`: the path of the file. If the model is a scene, or can be saved like one, `load` finds
      it in the file.
    - `state`: the state of the fit.
    - `about`: anything to remember in the file that JSON can hold.
    """
    take_snapshot(state).write(path, **about)


def load_state(path: str | os.PathLike, like: FitState) -> FitState:
    """Loads a state into the structure of another.

    **Arguments:**

    - `path`: the path of the file.
    - `like`: a state of the same scene and optimiser, for its structure.

    **Returns:**

    The state.

    **Errors:**

    `DamagedFile` for a file that is cut or altered; `FileError` for one of another version or of
    another scene, with the leaves that differ.
    """
    header, arrays = read_archive(path)
    check_format(path, header)
    there = _leaves(path, header, len(arrays))
    # A single key that all purposes share, as in files of earlier versions.
    single = any(leaf[0] == ".keys" for leaf, _ in there)
    like = eqx.tree_at(_keys, like, like.keys.steps) if single else like
    here = _describe(like)
    if [leaf for leaf, _ in there] != here:
        what = _differences([leaf for leaf, _ in there], here)
        raise FileError(f"{path} belongs to another {what}.{written_by(header)}")
    templates = _arrays(like)
    found = [_from_numpy(arrays[at], x) for (_, at), x in zip(there, templates, strict=True)]
    state = _with_arrays(like, found)
    return eqx.tree_at(_keys, state, shared_keys(_keys(state))) if single else state


def _keys(state: FitState) -> Any:
    return state.keys


def _leaves(path: str | os.PathLike, header: dict[str, Any], arrays: int) -> list[tuple[Any, int]]:
    """Reads the leaves from a header, and the index of each one's array."""
    try:
        leaves = [
            ((_RENAMED.get(name, name), kind, shape), at)
            for name, kind, shape, at in header["leaves"]
        ]
        if all(0 <= at < arrays for _, at in leaves):
            return leaves
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not the checkpoint of a fit.") from error
    raise DamagedFile(f"{path} is damaged: an array is missing.")


def _describe(state: FitState) -> list[tuple[str, str, list[int]]]:
    """Lists path, type and shape of every array. The model's paths are those of a scene."""
    named = label_leaves(state.model, lambda path: _MODEL + path)
    paths = jax.tree.leaves(named)
    keys = [keys for keys, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    others = [jax.tree_util.keystr(key) for key in keys[len(paths) :]]
    leaves = zip([*paths, *others], jax.tree.leaves(state), strict=True)
    return [(path, str(x.dtype), list(x.shape)) for path, x in leaves if isinstance(x, jax.Array)]


def _differences(there: list, here: list) -> str:
    """Says whether the scene or the optimiser differs, and names the first leaves that do."""
    one, other = ({path: _shown(*rest) for path, *rest in leaves} for leaves in (there, here))
    odd = [path for path in {**one, **other} if one.get(path) != other.get(path)]
    in_model = [path for path in odd if path.startswith(_MODEL)]
    what = "scene" if in_model else "optimiser, or other leaves are optimised"
    odd = in_model or odd or ["the order"]
    lines = [
        f"{path.removeprefix(_MODEL)} is {one.get(path, 'nothing')} there and "
        f"{other.get(path, 'nothing')} here"
        for path in itertools.islice(odd, _NAMED)
    ]
    more = len(odd) - len(lines)
    return f"{what}: {'; '.join(lines)}" + (f"; and {more} more" if more else "")


def _shown(kind: str, shape: list[int]) -> str:
    return f"{kind}[{', '.join(map(str, shape))}]"


def _arrays(state: PyTree) -> list[Array]:
    return [leaf for leaf in jax.tree.leaves(state) if isinstance(leaf, jax.Array)]


def _with_arrays(state: FitState, arrays: list[Any]) -> FitState:
    remaining = iter(arrays)
    return jax.tree.map(lambda x: next(remaining) if isinstance(x, jax.Array) else x, state)


def _is_key(array: Array) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def _from_numpy(array: np.ndarray, template: Array) -> Array:
    expected = jax.random.key_data(template) if _is_key(template) else template
    # The numpy format loses types that numpy itself does not have.
    known = array.view(expected.dtype) if array.dtype.kind == "V" else array
    if known.shape != expected.shape or known.dtype != expected.dtype:
        raise DamagedFile("a checkpoint's arrays are not those that its header lists.")
    data = jnp.asarray(known)
    return (
        jax.random.wrap_key_data(data, impl=jax.random.key_impl(template))
        if _is_key(template)
        else data
    )
