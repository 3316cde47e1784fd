# pyright: reportMissingImports=false
"""Tensors to arrays and back, by DLPack where both are on one device and by numpy elsewhere."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from .._typing import Array


_PLATFORMS = {"cpu": "cpu", "cuda": "gpu"}


def to_array(value: Any) -> Any:
    """Converts a tensor to an array, and returns anything else as it is.

    The array shares the tensor's memory if possible: it must be gone before torch writes there.
    """
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype.is_complex:
        raise TypeError(
            f"complex tensors are not supported, as JAX and torch define complex gradients "
            f"differently; got {value.dtype}."
        )
    if value.dtype == torch.float64 and jnp.result_type(float) != jnp.float64:
        raise TypeError(
            "got a float64 tensor, but JAX works in float32: call `.float()` on it, or first "
            '`jax.config.update("jax_enable_x64", True)`.'
        )
    tensor = value.detach().contiguous()
    if _is_at(tensor.device, next(iter(jnp.zeros(()).devices()))):
        return jnp.from_dlpack(tensor)
    return jnp.array(tensor.cpu().numpy())


def to_tensor(array: Array, device: torch.device) -> torch.Tensor:
    """Converts an array that is used nowhere else; the tensor takes its memory if possible."""
    array = jax.block_until_ready(array)
    if _is_at(device, array.device):
        return torch.from_dlpack(array)
    return torch.from_numpy(np.array(array)).to(device)


def common_device(values: Iterable[Any]) -> torch.device:
    """Returns the device of the tensors among some values; the CPU if there are none."""
    devices = {x.device for x in values if isinstance(x, torch.Tensor)}
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        raise ValueError(f"parameters and inputs are on several devices: {names}.")
    return devices.pop() if devices else torch.device("cpu")


def _is_at(device: torch.device, other: Any) -> bool:
    """Compares a device of torch with one of JAX."""
    platform = _PLATFORMS.get(device.type)
    return (platform, device.index or 0) == (other.platform, other.local_hardware_id)
