import dataclasses
import os
import pathlib
import pickle
import types
import warnings
from typing import Any

import numpy as np

from .._typing import Array, Float
from ..io import FileError, import_extra


WEIGHTS_VARIABLE = "SCENEGRAPH_LPIPS_WEIGHTS"
# Torchvision's name of the file with the weights of VGG16.
_FILE = "vgg16-397923af.pth"
# The network halves a picture four times; this leaves one pixel.
_SMALLEST = 16


@dataclasses.dataclass(frozen=True)
class Lpips:
    """LPIPS: the distance of two pictures in the features of a network trained on photographs.

    Zhang et al. 2018, version 0.1 over VGG16, as computed by the authors' package `lpips`.
    """

    network: Any
    device: str = "cpu"

    def __call__(
        self, image: Float[Array, "height width 3"], target: Float[Array, "height width 3"]
    ) -> float:
        """Computes the distance of pictures from 0 to 1, without clipping; it has no gradient."""
        if min(image.shape[:2]) < _SMALLEST:
            size = f"{image.shape[1]}x{image.shape[0]}"
            raise ValueError(f"LPIPS needs pictures of at least 16x16 pixels; got {size}.")
        torch = import_extra("torch", "lpips", "LPIPS")
        pictures = [np.array(x, np.float32).transpose(2, 0, 1)[None] for x in (image, target)]
        with torch.no_grad():
            tensors = [torch.from_numpy(x).to(self.device) for x in pictures]
            return float(self.network(*tensors, normalize=True))


def load_lpips(weights: str | os.PathLike | None = None) -> Lpips:
    """Loads LPIPS from a file of weights; nothing is ever downloaded.

    **Arguments:**

    - `weights`: the path of torchvision's file of VGG16; by default the environment variable
      `SCENEGRAPH_LPIPS_WEIGHTS`, or `vgg16-397923af.pth` in PyTorch's own folder of such files.

    **Returns:**

    The metric, on a GPU if PyTorch has one.

    **Errors:**

    `MissingExtra` without the extra `lpips`; `FileError` if there is no such file, or if it holds
    something else.
    """
    package = import_extra("lpips", "lpips", "LPIPS")
    torch = import_extra("torch", "lpips", "LPIPS")
    path = _weights_file(torch, weights)
    # Warnings about the use of torchvision by `lpips`, and about files that are refused anyway.
    with warnings.catch_warnings(action="ignore"):
        known = _load(torch, path)
        network = package.LPIPS(net="vgg", pnet_rand=True, verbose=False)
    names = network.net.state_dict()
    try:
        # `slice2.5.weight` is torchvision's `features.5.weight`.
        original = {name: "features." + name.split(".", 1)[1] for name in names}
        network.net.load_state_dict({name: known[original[name]] for name in names})
    except (KeyError, TypeError, RuntimeError) as error:
        raise FileError(f"{path} does not hold the weights of torchvision's VGG16.") from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Lpips(network.to(device), device)


def _weights_file(torch: types.ModuleType, weights: str | os.PathLike | None) -> pathlib.Path:
    given = weights or os.environ.get(WEIGHTS_VARIABLE)
    path = pathlib.Path(given or pathlib.Path(torch.hub.get_dir()) / "checkpoints" / _FILE)
    if not path.is_file():
        raise FileError(
            f"LPIPS needs the weights of VGG16, which are never downloaded, and there is no file "
            f"{path}. Set {WEIGHTS_VARIABLE} to the path of torchvision's {_FILE}."
        )
    return path


def _load(torch: types.ModuleType, path: pathlib.Path) -> Any:
    """Loads a file that holds nothing but arrays; code in it is not executed."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        reason = (str(error) or "it is empty").splitlines()[0]
        raise FileError(f"{path} does not hold the weights of a network ({reason}).") from error
