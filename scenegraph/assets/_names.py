from collections import Counter
from collections.abc import Iterable


# What paths use for other things.
_RESERVED = ("background", "integrator", "transform")


def unique_names(names: Iterable[str]) -> list[str]:
    """Makes names of children: without dots and stars, and each once."""
    found: dict[str, None] = {}
    seen = Counter[str]()
    for name in names:
        plain = name.replace(".", "_").replace("*", "_") or "node"
        free = plain = f"{plain}_" if plain in _RESERVED else plain
        while free in found:
            seen[plain] += 1
            free = f"{plain}_{seen[plain] + 1}"
        found[free] = None
    return list(found)
