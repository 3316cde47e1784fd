"""The settings of a fit as flags."""

import dataclasses
import inspect
import re
from typing import Annotated, Any

import tyro

from ..settings import FitConfig, METHODS, PARTS, PRESETS, setting_names


_ARGUMENT = re.compile(r"^- `(\w+)`: (.*?)(?=^\S|\n\n|\Z)", re.MULTILINE | re.DOTALL)


def as_flags(settings: Any, title: str = "") -> tuple[Any, Any]:
    """Returns a type and its default that tyro shows as sections of flags, with docstrings."""
    summary, _, rest = (inspect.getdoc(type(settings)) or "").partition("\n\n")
    texts = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(rest)}
    texts = {name: text[0].upper() + text[1:] for name, text in texts.items()}
    kinds, values = {}, {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        kind = Annotated[field.type, tyro.conf.arg(help=texts[field.name])]
        if field.name in PARTS:
            name = type(value).__name__ if field.name == "method" else field.name
            kind, value = as_flags(value, name)
        kinds[field.name], values[field.name] = kind, value
    base = type(settings)
    made = dataclasses.make_dataclass(base.__name__, kinds.items(), bases=(base,), frozen=True)
    return Annotated[made, tyro.conf.arg(name=title, help=summary)], made(**values)


def refuse_others(arguments: list[str], config: FitConfig, preset: str) -> None:
    """Raises `ValueError` for flags of settings that only other methods have."""
    own = config.flat()
    for argument in arguments:
        flag = argument.split("=")[0]
        name = flag.removeprefix("--").replace("-", "_").removeprefix("no_")
        others = [kind for kind in METHODS.values() if name in setting_names(kind)]
        if flag.startswith("--") and others and name not in own:
            listed = ", ".join("--" + x.replace("_", "-") for x in setting_names(config.method))
            used = next(x for x, other in PRESETS.items() if isinstance(other.method, others[0]))
            raise ValueError(
                f"{flag} is not a setting of {type(config.method).__name__} (preset {preset}), "
                f"which has {listed}; {others[0].__name__} has it: --preset {used}."
            )
