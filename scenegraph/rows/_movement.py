"""Operations that move array elements and compute nothing: they cost nothing at run time.

Each maps the parameters of the primitive, arrays of nodes and the shape of the result to arrays of
nodes; `None` for parameters that it does not handle.
"""

from collections.abc import Callable

import numpy as np


_Arrays = list[np.ndarray]
_Shape = tuple[int, ...]


def _broadcast(params: dict, arrays: _Arrays, shape: _Shape) -> _Arrays:
    aligned = [1] * len(shape)
    for axis, size in zip(params["broadcast_dimensions"], arrays[0].shape, strict=True):
        aligned[axis] = size
    return [np.broadcast_to(arrays[0].reshape(aligned), shape)]


def _reshape(params: dict, arrays: _Arrays, shape: _Shape) -> _Arrays:
    order = params["dimensions"]
    return [(arrays[0] if order is None else arrays[0].transpose(order)).reshape(shape)]


def _slice(params: dict, arrays: _Arrays, shape: _Shape) -> _Arrays:
    del shape
    steps = params["strides"] or (1,) * arrays[0].ndim
    ends = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return [arrays[0][tuple(slice(*end) for end in ends)]]


def _unstack(params: dict, arrays: _Arrays, shape: _Shape) -> _Arrays:
    front = np.moveaxis(arrays[0], params["axis"], 0)
    return [front[i : i + 1].reshape(shape) for i in range(front.shape[0])]


def _pad(params: dict, arrays: _Arrays, shape: _Shape) -> _Arrays:
    whole = np.empty(shape, object)
    whole[...] = arrays[1].item()
    # Number i along an axis goes to low + (1 + inner) i, which may lie beyond the ends.
    places, chosen = [], []
    for (low, _, inner), size, end in zip(
        params["padding_config"], arrays[0].shape, shape, strict=True
    ):
        along = low + (1 + inner) * np.arange(size)
        there = (along >= 0) & (along < end)
        places.append(along[there])
        chosen.append(np.flatnonzero(there))
    whole[np.ix_(*places)] = arrays[0][np.ix_(*chosen)]
    return [whole]


MOVEMENTS: dict[str, Callable[[dict, _Arrays, _Shape], _Arrays | None]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda p, arrays, shape: [arrays[0].reshape(shape)],
    "expand_dims": lambda p, arrays, shape: [arrays[0].reshape(shape)],
    "transpose": lambda p, arrays, shape: [arrays[0].transpose(p["permutation"])],
    "rev": lambda p, arrays, shape: [np.flip(arrays[0], p["dimensions"])],
    "concatenate": lambda p, arrays, shape: [np.concatenate(arrays, p["dimension"])],
    "stack": lambda p, arrays, shape: [np.stack(arrays, p["axis"])],
    "slice": _slice,
    "split": lambda p, arrays, shape: np.split(arrays[0], np.cumsum(p["sizes"])[:-1], p["axis"]),
    "unstack": _unstack,
    "pad": _pad,
}
