"""Every check of the project: `nox -s tests`, `nox -s docs`, ...; `nox` alone runs the first three.

The environment goes through to all sessions; tests find real data by `SCENEGRAPH_DATA`.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import nox


nox.options.sessions = ["tests", "lint", "types"]

EXTRAS = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]

# Compiling is most of what the tests do. A program met again, by the other process or in a later
# run, is read instead, which takes more than half of the time away.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(".cache/jax").resolve()),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
# Compiled with little optimisation, and in one piece, what the tests do takes half the time.
HASTY = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
# Of versions before this one only: later ones end a process that is given the flag.
HASTY_BEFORE = "--xla_cpu_use_fusion_emitters=false", (0, 11, 1)
# What the compiler's optimisations may change: these are compiled as users have it.
OPTIMISED = [
    *sorted(map(str, pathlib.Path("tests").rglob("test_golden_*.py"))),
    "tests/fitting/test_memory.py::test_the_compiler_says_what_a_step_needs",
    "tests/test_architecture.py::test_compiler_sums_rightly",
]


# The tools, and the small extras that have tests; a test whose extra is not there is skipped.
WITH_EXTRAS = ".[dev,metrics,tensorboard,video,exr,mesh,photos,mujoco]"


def pinned(name: str) -> str:
    """The requirement of one development tool, so that its version stands in pyproject only."""
    return next(line for line in EXTRAS["dev"] if line.split("==")[0] == name)


def hasty(session: nox.Session) -> str:
    """Flags of a compiler in a hurry, as far as the session's version knows them."""
    command = "python", "-c", "import jaxlib; print(jaxlib.__version__)"
    version = session.run(*command, silent=True, log=False)
    flag, last = HASTY_BEFORE
    return f"{HASTY} {flag}" if tuple(map(int, version.split("."))) < last else HASTY


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but the slow ones; or those that the arguments after `--` name."""
    session.install("-e", WITH_EXTRAS)
    pytest = "pytest", "-n", "2", "--dist", "worksteal"
    if session.posargs:
        session.run(*pytest, *session.posargs, env=CACHE)
        return
    others = [f"--deselect={test}" for test in OPTIMISED]
    session.run(*pytest, *others, env=CACHE | {"XLA_FLAGS": hasty(session)})
    session.run(*pytest, *OPTIMISED, env=CACHE)


@nox.session
def slow(session: nox.Session) -> None:
    """The slow tests."""
    session.install("-e", WITH_EXTRAS)
    pytest = "pytest", "-n", "2", "--dist", "worksteal"
    session.run(*pytest, "-m", "slow", *session.posargs, env=CACHE)


# Pythons for which pip chooses the newest JAX; and the exit code of a command that cannot make one.
NEWER_PYTHONS = "python3.14", "python3.13", "python3.12"
CANNOT = 77


@nox.session(venv_backend="none")
def newest(session: nox.Session) -> None:
    """README's block, a fit and some tests with the newest Python and JAX.

    `NEWEST_PYTHON` may name a command that runs others where there is such a Python; otherwise the
    newest Python that is installed here is taken. Arguments: `--readme` for the block alone.
    """
    script = "tests/versions.py", *session.posargs
    if command := shlex.split(os.environ.get("NEWEST_PYTHON", "")):
        done = subprocess.run([*command, "python", *script], check=False)
        if done.returncode == CANNOT:
            session.skip(f"{command[0]} has no such Python to offer here")
        if done.returncode:
            session.error(f"{' '.join(script)} failed")
        return
    if not (python := next(filter(shutil.which, NEWER_PYTHONS), None)):
        session.skip(f"there is none of {', '.join(NEWER_PYTHONS)}, and no NEWEST_PYTHON")
    session.run(fresh_python(session, python), *script)


@nox.session(venv_backend="none")
def oldest(session: nox.Session) -> None:
    """The same with the oldest versions that `pyproject.toml` admits, on this Python."""
    python = fresh_python(session, sys.executable)
    session.run(python, "tests/versions.py", "--oldest", *session.posargs)


def fresh_python(session: nox.Session, python: str) -> str:
    """The Python of a new environment, which has nothing."""
    folder = pathlib.Path(session.create_tmp()) / "fresh"
    session.run(python, "-m", "venv", "--clear", str(folder))
    return str(folder / "bin" / "python")


@nox.session
def stress(session: nox.Session) -> None:
    """Stress tests: kills, damaged and strange files, an endurance test; arguments name some."""
    session.install("-e", ".[dev]")
    session.run("python", "tests/stress/run.py", *session.posargs, env=CACHE)


@nox.session
def bounds(session: nox.Session) -> None:
    """Maps, searches and pictures, with kernels that end the process at a look-up out of bounds."""
    session.install("-e", WITH_EXTRAS)
    env = CACHE | {"XLA_FLAGS": hasty(session), "SCENEGRAPH_CHECK_LOOK_UPS": "1"}
    folders = [f"tests/{name}" for name in ("rows", "visibility", "integrators", "flat")]
    # Of one the lengths of tables are in the code then; of the other products are fused otherwise.
    same = "tests/rows/test_batches.py::test_other_lengths_of_a_shared_table_have_the_same_kernels"
    grids = (
        "tests/visibility/test_search.py::test_rays_find_what_a_loop_over_all_things_finds[grids]"
    )
    others = f"--deselect={same}", f"--deselect={grids}"
    session.run("pytest", "-n", "2", *(session.posargs or folders), *others, env=env)


@nox.session
def torch(session: nox.Session) -> None:
    """The bridge to PyTorch."""
    # Where pip knows the build `+cpu`, it takes that; PyPI's for Linux brings gigabytes for GPUs.
    session.install("-e", ".[dev]", "torch==2.13.0")
    page = "tests/test_docs.py::test_code_blocks_run[interop.md]"
    session.run("pytest", "tests/interop", page, *session.posargs, env=CACHE)


@nox.session
def lpips(session: nox.Session) -> None:
    """LPIPS, beside PyPI's PyTorch and torchvision, which take gigabytes."""
    session.install("-e", ".[dev,lpips]")
    session.run("pytest", "tests/losses/test_lpips.py", *session.posargs, env=CACHE)


@nox.session
def lint(session: nox.Session) -> None:
    """Format and common mistakes; `ruff format` and `ruff check --fix` mend most of them."""
    session.install(pinned("ruff"))
    session.run("ruff", "format", "--check")
    session.run("ruff", "check")


@nox.session
def types(session: nox.Session) -> None:
    """Static types."""
    session.install("-e", WITH_EXTRAS)
    session.run("pyright", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, in `site/`; a broken link is an error."""
    session.install(*EXTRAS["docs"])
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def examples(session: nox.Session) -> None:
    """Every example, with few steps; the pictures go to the session's `tmp`."""
    session.install(".")
    scripts = sorted(pathlib.Path("examples").resolve().glob("*.py"))
    if not scripts:
        session.error("there are no scripts in examples/")
    with session.chdir(session.create_tmp()):
        for script in scripts:
            session.run("python", str(script), "--steps", "2", env=CACHE)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks; arguments after `--` are theirs. Some run beside Mitsuba 3 if it is there;
    on a CPU that needs LLVM (`DRJIT_LIBLLVM_PATH`: Debian's `libllvm19`)."""
    session.install(".")
    if {"surfaces", "many", "meshes", "path"} & set(session.posargs):
        session.install("mitsuba", success_codes=(0, 1))
    session.run("python", "tests/benchmarks/run.py", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Gradients of small scenes against finite differences of hard visibility; see the page."""
    session.install(".")
    session.run("python", "tests/conformance/run.py", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """A minute of fitting the data set that the library makes for itself."""
    session.install(".")
    out = pathlib.Path(session.create_tmp()) / "demo"
    shutil.rmtree(out, ignore_errors=True)
    session.run("scenegraph", "fit", "--out", str(out), "--max-time", "60s")


@nox.session
def build(session: nox.Session) -> None:
    """The wheel, tried in an environment that has nothing else."""
    session.install(pinned("build"))
    tmp = pathlib.Path(session.create_tmp())
    shutil.rmtree(tmp / "dist", ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(tmp / "dist"))
    session.run("python", "-m", "venv", "--clear", str(tmp / "fresh"))
    python = str(tmp / "fresh" / "bin" / "python")
    wheels = map(str, (tmp / "dist").glob("*.whl"))
    session.run(python, "-m", "pip", "install", "-q", *wheels, external=True)
    # Isolated, so that the checkout in the current folder is not what gets imported.
    session.run(python, "-I", "-c", "import scenegraph; print(scenegraph.__file__)", external=True)
