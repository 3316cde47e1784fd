"""All settings of a fit, by what they describe; flat names, and what `config.json` holds."""

import dataclasses
import difflib
from typing import Any, Literal, TypeAlias

from ._corrections import CorrectionSettings
from ._data_settings import DataSettings
from ._grid import Grid
from ._method import AbstractMethod
from ._mipnerf import MipNerf
from ._ranges import check_ranges, ranged
from ._training import TrainingSettings


# The names of the methods in `--field` and in `config.json`; a new method is a line here.
MethodName: TypeAlias = Literal["mlp", "grid"]
METHODS: dict[MethodName, type[AbstractMethod]] = {"mlp": MipNerf, "grid": Grid}
PARTS = ("method", "data", "training", "corrections", "output")
# The number of steps where neither a setting nor a time limit says otherwise.
_STEPS = 20_000
# Settings of earlier versions that have no effect any more.
_DROPPED = ("rounds",)


@dataclasses.dataclass(frozen=True)
class OutputSettings:
    """The files and lines that a fit writes on its way.

    **Arguments:**

    - `log_every`: the number of steps between lines of the log.
    - `eval_every`: the number of steps between PSNRs of a few held-out pictures; 0 for none.
    - `save_every`: the number of steps between checkpoints; 0 for one at the end only.
    - `keep`: the number of newest checkpoints that stay, beside the best on held-out pictures.
    - `film`: the film at the end: a turntable, or none.
    """

    log_every: int = ranged(50, 1, 2**31 - 1)
    eval_every: int = ranged(500, 0, 2**31 - 1)
    save_every: int = ranged(1000, 0, 2**31 - 1)
    keep: int = ranged(3, 1, 2**31 - 1)
    film: Literal["turntable", "none"] = "turntable"

    def __post_init__(self):
        check_ranges(self)


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """All settings of a fit of a radiance field to pictures.

    **Arguments:**

    - `method`: the method, a `MipNerf` or a `Grid`, with its own settings.
    - `data`: the settings of the data.
    - `training`: the settings of the optimisation.
    - `corrections`: the settings of what is corrected of cameras and colours.
    - `output`: the settings of log and checkpoints.
    - `steps`: the number of training steps; by default 20,000, and as many as there is time for
      where the time is limited.
    - `seed`: the seed of all randomness: weights, batches, sample positions.
    """

    method: AbstractMethod = MipNerf()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()
    corrections: CorrectionSettings = CorrectionSettings()
    output: OutputSettings = OutputSettings()
    steps: int | None = ranged(None, 0, 2**31 - 1)
    seed: int = ranged(0, 0, 2**32 - 1)

    def __post_init__(self):
        check_ranges(self)

    def count_steps(self, limit: float | None = None) -> int:
        """Returns the number of steps of a fit, whose time may have a `limit` in seconds."""
        if self.steps is not None:
            return self.steps
        if limit is None:
            return _STEPS
        from ..fitting import ENDLESS

        return ENDLESS

    def replace(self, **changes: Any) -> "FitConfig":
        """Changes settings.

        **Arguments:**

        - `changes`: new values by name. The name of a setting is looked up in all parts, so that
          `config.replace(width=64, batch_size=128)` changes the method and the training.

        **Returns:**

        The changed settings.

        **Errors:**

        `ValueError` for a name that no part has, with the settings of the method.
        """
        whole = {name: x for name, x in changes.items() if name in setting_names(self)}
        changed = dataclasses.replace(self, **whole)
        for part in PARTS:
            settings = getattr(changed, part)
            own = {name: x for name, x in changes.items() if name in setting_names(settings)}
            changed = dataclasses.replace(changed, **{part: dataclasses.replace(settings, **own)})
        for name in changes:
            if name not in whole and name not in changed.flat():
                raise ValueError(_explain_missing(changed, name))
        return changed

    def flat(self) -> dict[str, Any]:
        """Lists all settings by their names, those of the parts included."""
        own = {"steps": self.steps, "seed": self.seed}
        parts = [vars(getattr(self, part)) for part in PARTS]
        return {name: value for values in (own, *parts) for name, value in values.items()}


def setting_names(part: Any) -> list[str]:
    """Lists the settings of one part, or of a method's class."""
    return [field.name for field in dataclasses.fields(part)]


def field_name(method: AbstractMethod) -> MethodName:
    """Returns the name of a method in `--field`."""
    return next(name for name, kind in METHODS.items() if isinstance(method, kind))


def _explain_missing(config: FitConfig, name: str) -> str:
    """Says which method has a setting that this one lacks, or which name is the nearest."""
    own = type(config.method).__name__
    listed = ", ".join(setting_names(config.method))
    others = [kind.__name__ for kind in METHODS.values() if name in setting_names(kind)]
    if others:
        has = " and ".join(others)
        return f"`{name}` is not a setting of {own}, which has {listed}; {has} has it."
    near = difflib.get_close_matches(name, config.flat(), n=1, cutoff=0.0)[0]
    return f"there is no setting `{name}`; did you mean `{near}`? {own} has {listed}."


def config_record(config: FitConfig) -> dict[str, Any]:
    """Writes settings as `config.json` holds them: nested, with the name of the method."""
    return {"field": field_name(config.method), **dataclasses.asdict(config)}


def config_of_record(record: dict[str, Any]) -> FitConfig:
    """Reads settings from `config.json`, those of the last version too, which were flat."""
    flat = {**record, **{name: x for part in PARTS for name, x in record.get(part, {}).items()}}
    config = FitConfig(METHODS[flat.pop("field")]())
    # Runs saved before points led rays go on without.
    flat.setdefault("point_weight", 0.0)
    # The flat form held the settings of all methods.
    foreign = {*PARTS, *_DROPPED, *(x for kind in METHODS.values() for x in setting_names(kind))}
    kept = {name: x for name, x in flat.items() if name not in foreign - {*config.flat()}}
    # JSON has lists in the place of tuples.
    return config.replace(**{k: tuple(x) if isinstance(x, list) else x for k, x in kept.items()})
