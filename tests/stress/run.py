"""Stress tests: `nox -s stress [-- NAME ...]`; results are merged into `reliability.json`."""

import json
import pathlib
import sys


HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "benchmarks")]

import tyro  # noqa: E402
from measure import machine  # noqa: E402

from stress import damage, endurance, kills, strangers  # noqa: E402


STRESS_TESTS = {"damage": damage, "endurance": endurance, "kills": kills, "strangers": strangers}


def main(
    names: tyro.conf.Positional[tuple[str, ...]] = tuple(STRESS_TESTS),
    out: pathlib.Path = pathlib.Path("docs/benchmarks/reliability.json"),
) -> None:
    """Runs stress tests, and writes what they found; one that fails ends it."""
    for name in names:
        found = {**STRESS_TESTS[name].main(), "machine": machine()}
        known = json.loads(out.read_text()) if out.exists() else {}
        out.write_text(json.dumps({**known, name: found}, indent=2) + "\n")
        print(name, json.dumps(found))


if __name__ == "__main__":
    tyro.cli(main)
