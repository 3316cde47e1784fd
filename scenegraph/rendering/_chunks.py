from typing import Literal

import jax

from ..integrators import AbstractIntegrator


_SAMPLES_ELSEWHERE = 2**17


def choose_chunk(
    chunk: int | Literal["auto"], rays: int, integrator: AbstractIntegrator, *, samples_on_cpu: int
) -> int:
    """How many rays are worked on at a time.

    **Arguments:**

    - `chunk`: a number of rays, or `"auto"` for one that suits the device.
    - `rays`: how many there are.
    - `integrator`: says how many samples a ray has.
    - `samples_on_cpu`: what suits a CPU, where few samples stay in the cache; other devices want
      much work at a time. Keyword only argument.

    **Returns:**

    At least one and at most `rays`.

    **Errors:**

    `ValueError` for a chunk below one.
    """
    if chunk == "auto":
        samples = samples_on_cpu if jax.default_backend() == "cpu" else _SAMPLES_ELSEWHERE
        chunk = max(1, samples // integrator.samples_per_ray)
    if not isinstance(chunk, int) or chunk < 1:
        raise ValueError(f'`chunk` must be a positive integer or "auto"; got {chunk!r}.')
    return min(chunk, rays)
