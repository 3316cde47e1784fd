import difflib


# What pictures of depths have by default; it is known without matplotlib, which takes a while.
USUAL_MAP = "turbo"


def check_color_map(name: str) -> None:
    """Refuses a name that none of matplotlib's colour maps has."""
    if name == USUAL_MAP:
        return
    # Imported here and not above: a plain import of the library does not load it.
    from matplotlib import colormaps

    if name not in colormaps:
        near = difflib.get_close_matches(name, colormaps, n=1, cutoff=0.0)
        raise ValueError(f"there is no colour map {name!r}; did you mean {near[0]!r}?")
