"""Mitsuba in a process of its own, for the benchmark of surfaces.

It reads requests, one JSON list a line, and answers each with a line of JSON.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from surfaces_scene import theirs


class Mitsuba:
    """Mitsuba's picture, and its gradient by the two colours of the floor."""

    def __init__(self):
        # By name: neither is among the project's requirements.
        mitsuba = importlib.import_module("mitsuba")
        mitsuba.set_variant("llvm_ad_rgb")
        self.library, self.jit = mitsuba, importlib.import_module("drjit")
        self.scene = theirs(mitsuba)
        self.parameters = mitsuba.traverse(self.scene)
        self.colors = [key for key in self.parameters.keys() if ".color" in key]

    def version(self) -> str:
        """Of Mitsuba."""
        return self.library.__version__

    def forward(self, samples: int, seed: int = 0) -> float:
        """Seconds of one picture."""
        return self._timed(lambda: self.library.render(self.scene, spp=samples, seed=seed))

    def gradient(self, samples: int) -> float:
        """Seconds of one picture and its gradient."""
        return self._timed(lambda: self._slopes(samples))

    def picture(self, path: str, samples: int, seed: int, at_once: int = 64) -> str:
        """Saves a picture over a white background."""
        total = np.zeros(1)
        for i in range(max(1, samples // at_once)):
            some = self.library.render(self.scene, spp=min(samples, at_once), seed=seed + i)
            rgba = np.asarray(some, np.float64)
            total = total + rgba[..., :3] + 1 - rgba[..., 3:]
        np.save(path, total / max(1, samples // at_once))
        return path

    def _slopes(self, samples: int) -> list[Any]:
        for key in self.colors:
            self.jit.enable_grad(self.parameters[key])
            self.jit.clear_grad(self.parameters[key])
        picture = self.library.render(self.scene, self.parameters, spp=samples)
        self.jit.backward(self.jit.mean(self.jit.square(picture.array)))
        return [self.jit.grad(self.parameters[key]) for key in self.colors]

    def _timed(self, call: Callable[[], Any]) -> float:
        begin = time.perf_counter()
        self.jit.eval(call())
        self.jit.sync_thread()
        return time.perf_counter() - begin


def main() -> None:
    """Answers until there are no more requests."""
    worker = Mitsuba()
    print(json.dumps(worker.version()), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
