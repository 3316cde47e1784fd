"""What takes long: `nox -s soak [-- NAME ...]`; results are merged into `reliability.json`."""

import json
import pathlib
import sys


HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "benchmarks")]

import tyro  # noqa: E402
from measure import machine  # noqa: E402

from soaks import damage, endurance, kills, strangers  # noqa: E402


SOAKS = {"damage": damage, "endurance": endurance, "kills": kills, "strangers": strangers}


def main(
    names: tyro.conf.Positional[tuple[str, ...]] = tuple(SOAKS),
    out: pathlib.Path = pathlib.Path("docs/benchmarks/reliability.json"),
) -> None:
    """Runs soaks, and writes what they found; one that fails ends it."""
    for name in names:
        found = {**SOAKS[name].main(), "machine": machine()}
        known = json.loads(out.read_text()) if out.exists() else {}
        out.write_text(json.dumps({**known, name: found}, indent=2) + "\n")
        print(name, json.dumps(found))


if __name__ == "__main__":
    tyro.cli(main)
