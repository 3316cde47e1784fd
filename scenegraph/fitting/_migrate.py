"""States that go on with a scene that has been rebuilt."""

import dataclasses
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.tree_util as jtu
import optax

from .._typing import Array, PyTree
from ..scene import label_leaves, no_match
from ._resample import resample_moment
from ._state import FitState, strong_types
from ._trainable import choose_trainable


def migrate(
    state: FitState,
    scene: PyTree,
    *,
    optimizer: optax.GradientTransformation,
    trainable: Sequence[str] | PyTree | None = None,
    origins: Mapping[str, str] | None = None,
) -> FitState:
    """Makes the state of a fit that goes on with another scene.

    Nodes may have been added, removed, cloned or refined. The optimiser's moments of a leaf go with
    its path. New leaves have fresh moments; so has, with
    a warning, a leaf of another shape, but for texels and grids, whose moments are interpolated
    (see the documentation's page on reliability). Keys, step and counts go on.

    **Arguments:**

    - `state`: the state of the fit so far.
    - `scene`: the scene to go on with.
    - `optimizer`: the optimiser of the fit. Keyword only, as is all that follows.
    - `trainable`: paths or a tree of booleans, as for `fit`.
    - `origins`: paths of nodes or leaves in `scene`, each with its path in the old scene, for those
      that have moved, have another name, or are copies.

    **Returns:**

    The state to give to `fit`, with the new scene.

    **Errors:**

    `ValueError` for a path that matches nothing.

    Example: a second lamp, which goes on as the first does.

    ```python
    lamps = sg.Group(**scene.root.children, lamp2=scene["lamp"])
    scene = dataclasses.replace(scene, root=lamps)
    state = sg.migrate(state, scene, optimizer=optimizer, origins={"lamp2": "lamp"})
    result = sg.fit(scene, views, optimizer=optimizer, steps=2000, key=key, state=state)
    ```
    """
    model = strong_types(scene)
    fresh = optimizer.init(eqx.filter(model, choose_trainable(scene, trainable)))
    old = {(x.slot, x.path): x for x in _moments(state.moments, state.model)}
    _check_origins(origins or {}, _places(state.model), _places(model))
    lost: list[str] = []
    carried = [
        _carried(x, old.get((x.slot, _origin(x.path, origins or {}))), lost)
        for x in _moments(fresh, model)
    ]
    if lost:
        warnings.warn(f"no rule says how moments change: {'; '.join(lost)}", stacklevel=2)
    moments = jtu.tree_unflatten(jtu.tree_structure(fresh), carried)
    return dataclasses.replace(state, model=model, moments=moments)


class _Moment(NamedTuple):
    """One array of an optimiser's state; `path` is that of its leaf, if it has one."""

    slot: str
    name: str
    path: str | None
    array: Any
    owner: Any
    field: str


def _moments(moments: PyTree, model: PyTree) -> list[_Moment]:
    """Lists an optimiser's arrays; their keys end like those of the leaves they belong to."""
    places = {keys: path for path, keys in _places(model).items()}
    return [_moment(keys, x, places, model) for keys, x in jtu.tree_flatten_with_path(moments)[0]]


def _moment(keys: tuple, array: Any, places: Mapping[tuple, str], model: PyTree) -> _Moment:
    for start in range(len(keys) + 1):
        head, tail = keys[:start], keys[start:]
        if tail in places:
            name = str(getattr(head[-1], "name", "")) if head else ""
            owner, field = _owner(model, tail)
            return _Moment(jtu.keystr(head), name, places[tail], array, owner, field)
    return _Moment(jtu.keystr(keys), "", None, array, None, "")


def _places(model: PyTree) -> dict[str, tuple]:
    """Returns the keys of a model's leaves by path; later ones of equal paths are numbered."""
    labels = label_leaves(model, lambda path: path)
    seen: Counter[str] = Counter()
    places = {}
    for keys, path in jtu.tree_flatten_with_path(labels)[0]:
        places[f"{path} ({seen[path]})" if seen[path] else path] = keys
        seen[path] += 1
    return places


def _owner(model: PyTree, keys: tuple) -> tuple[Any, str]:
    """Returns the node that holds a leaf, and the leaf's name in it."""
    node = model
    for key in keys[:-1]:
        named = isinstance(key, jtu.GetAttrKey)
        node = (
            getattr(node, key.name) if named else node[getattr(key, "key", getattr(key, "idx", 0))]
        )
    return node, str(getattr(keys[-1], "name", "")) if keys else ""


def _origin(path: str | None, origins: Mapping[str, str]) -> str | None:
    for new, old in origins.items():
        if path is not None and _is_below(path, new):
            return old + path[len(new) :]
    return path


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}.")


def _check_origins(origins: Mapping[str, str], there: Iterable[str], here: Iterable[str]) -> None:
    for new, old in origins.items():
        for top, paths in ((new, list(here)), (old, list(there))):
            if not any(_is_below(path, top) for path in paths):
                raise no_match(top, paths)


def _carried(moment: _Moment, before: _Moment | None, lost: list[str]) -> Array:
    """Returns the moment that there was before, in the present shape."""
    fresh = moment.array
    if before is None or not eqx.is_array(fresh):
        return fresh
    if before.array.shape == fresh.shape:
        return before.array.astype(fresh.dtype)
    same = resample_moment(
        before.array, moment.name, moment.field, before.owner, moment.owner, fresh
    )
    if same is None:
        lost.append(
            f"{moment.path}{moment.slot} was {list(before.array.shape)}, is "
            f"{list(fresh.shape)}, and begins anew"
        )
    return fresh if same is None else same
