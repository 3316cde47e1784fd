"""Mitsuba's pictures of the scenes of the benchmark of random paths, in a process of its own."""

import importlib
import json
import sys
import time

import numpy as np
from path_scenes import theirs


def main(name: str, size: str, samples: str, parts: str, out: str) -> None:
    """Saves the mean of some pictures and its variance; prints the seconds that they take."""
    # By name: neither is among the project's requirements.
    mitsuba, drjit = importlib.import_module("mitsuba"), importlib.import_module("drjit")
    mitsuba.set_variant("llvm_ad_rgb")
    scene = theirs(mitsuba, name, int(size))
    each = int(samples) // int(parts)
    pictures, seconds, processor = [], [], []
    for seed in range(int(parts) + 1):
        begin, used = time.perf_counter(), time.process_time()
        picture = mitsuba.render(scene, spp=each, seed=seed)
        drjit.eval(picture)
        drjit.sync_thread()
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - used)
        pictures.append(np.asarray(picture, np.float64))
    # The first one compiles.
    kept = np.stack(pictures[1:])
    np.savez(out, mean=kept.mean(axis=0), variance=kept.var(axis=0, ddof=1) / len(kept))
    one, cpu = float(np.median(seconds[1:])), float(np.median(processor[1:]))
    print(json.dumps({"first": seconds[0], "one": one, "cpu": cpu, "samples": each}))


if __name__ == "__main__":
    main(*sys.argv[1:])
