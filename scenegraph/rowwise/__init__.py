"""`map_rows`: `jax.vmap` that a CPU computes component by component."""

from ._rows import map_rows as map_rows
