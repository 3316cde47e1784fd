"""Flags that may be left out, and the settings of a fit as flags."""

import dataclasses
import inspect
import pathlib
import re
from typing import Annotated, Any, get_args

import tyro

from ..settings import FitConfig, METHODS, PARTS, PRESETS, setting_names


def _hint(default: str) -> str:
    return "" if default in ("None", "") else f"(default: {default})"


def optional(metavar: str) -> Any:
    """Marks a flag that is `None` unless it is given: its text says what holds then."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=_hint)


OptionalInt = Annotated[int | None, optional("INT")]
OptionalFloat = Annotated[float | None, optional("FLOAT")]
OptionalStr = Annotated[str | None, optional("STR")]
OptionalPath = Annotated[pathlib.Path | None, optional("PATH")]

# The type of switches that may be unset, and their values.
_UNSET, _VALUES = {bool, type(None)}, ("True", "False", "None")
_ARGUMENT = re.compile(r"^- `(\w+)`: (.*?)(?=^\S|\n\n|\Z)", re.MULTILINE | re.DOTALL)


def as_flags(settings: Any, title: str = "") -> tuple[Any, Any]:
    """Returns a type and its default that tyro shows as sections of flags, with docstrings."""
    summary, _, rest = (inspect.getdoc(type(settings)) or "").partition("\n\n")
    texts = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(rest)}
    as_flag = lambda match: f"--{match[1].replace('_', '-')}" if match[1] in texts else match[0]
    texts = {
        name: re.sub(r"`(\w+)`", as_flag, text[0].upper() + text[1:])
        for name, text in texts.items()
    }
    kinds, values = {}, {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        arg = tyro.conf.arg(
            help=texts[field.name], metavar=_metavar(field.type), help_behavior_hint=_hint
        )
        kind = Annotated[field.type, arg]
        if field.name in PARTS:
            name = type(value).__name__ if field.name == "method" else field.name
            kind, value = as_flags(value, name)
        kinds[field.name], values[field.name] = kind, value
    base = type(settings)
    # Ranges are checked once all flags are read: tyro would say it in its own way.
    unchecked = {"__post_init__": lambda self: None}
    made = dataclasses.make_dataclass(
        base.__name__, kinds.items(), bases=(base,), frozen=True, namespace=unchecked
    )
    return Annotated[made, tyro.conf.arg(name=title, help=summary)], made(**values)


def _metavar(kind: Any) -> str | None:
    """Returns how the value of an optional setting is shown; `None` for what tyro shows."""
    options = get_args(kind)
    if len(options) != 2 or options[1] is not type(None):
        return None
    items = get_args(options[0]) or options[:1]
    more = " ..." if get_args(options[0]) else ""
    return "True|False" if items[0] is bool else items[0].__name__.upper() + more


def with_values(arguments: list[str]) -> list[str]:
    """Adds the values of switches that may be unset: `--no-ndc` is `--ndc False`."""
    kinds = [type(FitConfig()), *METHODS.values(), *(type(getattr(FitConfig(), x)) for x in PARTS)]
    fields = [field for kind in kinds for field in dataclasses.fields(kind)]
    names = {f"--{x.name.replace('_', '-')}" for x in fields if set(get_args(x.type)) == _UNSET}
    spelt = []
    for argument, after in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument in names and after not in _VALUES:
            spelt += [argument, "True"]
        elif argument.replace("--no-", "--", 1) in names and argument not in names:
            spelt += [argument.replace("--no-", "--", 1), "False"]
        else:
            spelt.append(argument)
    return spelt


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
