"""What a user does first, with whichever Python and JAX run this: `nox -s newest`, `nox -s oldest`.

It installs the library into the environment of this Python, runs README's block and one fit, and
then, with what testing needs, the tests that `versions.txt` names. Arguments: `--oldest` takes the
oldest versions that `pyproject.toml` admits, `--readme` ends after README's block.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib


ROOT = pathlib.Path(__file__).resolve().parent.parent
EXTRAS = "dev,metrics,tensorboard,video,exr,mesh"
# A fit of the table-top ends with 37 dB on two quiet cores, with 26 on a fifth of that, and with 13
# where nothing is learnt.
FIT_TIME, LEAST_PSNR = "1m", 20.0


def run(*command: str, **more: object) -> None:
    """Runs a command, and says which and how long it took."""
    begin = time.perf_counter()
    print("$", *(x.splitlines()[0] for x in command), flush=True)
    subprocess.run(command, check=True, **more)
    print(f"  {time.perf_counter() - begin:.0f} s", flush=True)


def oldest() -> list[str]:
    """The oldest version of each package that the library asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.match(r"([\w-]+)>=([\w.]+)", line) for line in project["dependencies"]]
    return [f"{name}=={version}" for name, version in (x.groups() for x in needed)]


def run_readme(folder: str) -> None:
    """Runs the block of Python in README as a user would, outside of the checkout."""
    [block] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    versions = "import sys, jax, jaxlib\nprint(sys.version, jax.__version__, jaxlib.__version__)"
    print(block)
    run(sys.executable, "-I", "-c", f"{versions}\n{block}", cwd=folder)


def run_fit(folder: str) -> None:
    """Fits the data set that the library brings, and checks how well."""
    out = pathlib.Path(folder) / "run"
    command = "-m", "scenegraph", "fit", "--out", str(out), "--max-time", FIT_TIME
    run(sys.executable, "-I", *command, cwd=folder)
    psnr = json.loads((out / "metrics.json").read_text())["psnr"]
    print(f"  {psnr:.2f} dB", flush=True)
    if psnr < LEAST_PSNR:
        sys.exit(f"the fit has {psnr:.2f} dB, less than {LEAST_PSNR:g}")


def run_tests() -> None:
    """Runs the chosen tests, compiled in a hurry as in `nox -s tests`."""
    lines = (ROOT / "tests" / "versions.txt").read_text().splitlines()
    chosen = [line for line in lines if not line.startswith("#")]
    hasty = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    environment = {**os.environ, "XLA_FLAGS": hasty}
    pytest = "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"
    run(sys.executable, *pytest, *chosen, cwd=ROOT, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--readme", action="store_true")
    options = parser.parse_args()
    pip = sys.executable, "-m", "pip", "install", "--quiet"
    newest = "--upgrade", "--upgrade-strategy", "eager"
    versions = oldest() if options.oldest else newest
    run(*pip, str(ROOT), *versions)
    with tempfile.TemporaryDirectory() as folder:
        run_readme(folder)
        if options.readme:
            return
        run_fit(folder)
    run(*pip, f"{ROOT}[{EXTRAS}]", *versions)
    run_tests()


if __name__ == "__main__":
    main()
