from typing import Literal

import jax

from ..integrators import AbstractIntegrator


# Other devices take eight times as many samples at a time, between these numbers: with fewer they
# wait for kernels to start, and with more memory would count.
_FEWEST, _MOST = 2**17, 2**20


def choose_chunk(
    chunk: int | Literal["auto"], rays: int, integrator: AbstractIntegrator, *, samples_on_cpu: int
) -> int:
    """Returns the number of rays that a device works on at a time, from 1 to `rays`.

    `"auto"` takes as many rays as have `samples_on_cpu` samples together: few samples stay in the
    cache of a CPU; other devices want more work at a time.
    """
    if chunk == "auto":
        chunk = max(1, _choose_samples(samples_on_cpu) // integrator.samples_per_ray)
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f'`chunk` must be a positive integer or "auto"; got {chunk!r}.')
    return min(chunk, rays)


def _choose_samples(on_cpu: int) -> int:
    return on_cpu if jax.default_backend() == "cpu" else min(max(8 * on_cpu, _FEWEST), _MOST)
