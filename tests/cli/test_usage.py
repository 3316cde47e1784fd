"""What help and wrong arguments cost, and that they leave nothing behind."""

import os
import subprocess
import sys
from typing import get_args

import pytest


CODE = """
import resource, sys
sys.argv[0] = "scenegraph"
from scenegraph.cli import main
try:
    code = main()
except SystemExit as end:
    code = end.code
used = resource.getrusage(resource.RUSAGE_SELF)
loaded = [name for name in ("jax", "jaxlib", "equinox", "optax") if name in sys.modules]
sys.stderr.write(f"\\n{code} {used.ru_utime + used.ru_stime:.2f} {loaded}\\n")
"""
HELP = [[], ["--help"], ["fit", "--help"], ["render", "--help"], ["convert", "colmap", "--help"]]
WRONG = [
    ["fit", "data", "--width", "0"],
    ["fit", "data", "--no-such-flag"],
    ["fit", "data", "--preset", "fasd"],
    ["fit", "data", "--out", "run", "--max-time", "soon"],
    ["fit", "data", "--out", "run", "--near", "5", "--far", "1"],
    ["fit", "data", "--seed", "4294967296"],
    ["fit", "data", "--process-id", "1"],
    ["fit", "data", "--resume"],
    ["render", "run", "--width", "0"],
    ["render", "run", "--out", "film.txt"],
    ["render", "run", "--color-map", "turbp"],
    ["render", "run", "--up", "0", "0", "0"],
    ["render", "run", "--up", "nan", "0", "1"],
    ["data", "make", "out", "--size", "1000000"],
    ["export", "run", "out.glb", "--refine", "-1"],
    ["export", "run", "out.glb", "--level", "nan"],
    ["export", "run", "out.glb", "--box", "0", "0", "0", "1", "0", "1"],
    ["export", "run", "out.glb", "--texture", "1000000000"],
    ["convert", "multiscale", "data", "out", "--levels", "0"],
    ["fit", "data", "--target-psnr", "nan"],
    ["table"],
    ["paint"],
]


# What no command line of this kind can do without: pictures' formats and tyro.
LEAST = """
import resource
import imageio.v3, tyro
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""


def _least_seconds():
    """The processor time of a command line that does nothing, now."""
    done = subprocess.run([sys.executable, "-c", LEAST], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(x, 0) for x in HELP] + [(x, 2) for x in WRONG],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_arguments_are_read_without_jax(tmp_path, arguments, code):
    command = [sys.executable, "-c", CODE, *arguments]
    # Where any of some runs is quick enough beside another program: the machine may be busy.
    for last in (False, False, True):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        returned, seconds, loaded = done.stderr.splitlines()[-1].split(maxsplit=2)
        assert (returned, loaded) == (str(code), "[]"), done.stderr
        if float(seconds) < 5 * _least_seconds():
            break
        assert not last
    assert "Traceback" not in done.stderr
    assert not os.listdir(tmp_path)


LOGS = """
import os, sys
os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
from scenegraph.cli import main
sys.argv[1:] = ["presets"]
code = main({arguments})
print(code, os.environ["TF_CPP_MIN_LOG_LEVEL"])
"""


@pytest.mark.parametrize("arguments, level", [("", "3"), ("['presets']", "1")])
def test_commands_do_not_show_what_xla_logs(arguments, level):
    """A process of others has the level that JAX sets."""
    code = LOGS.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"0 {level}"


def test_quantities_are_those_of_pictures():
    from scenegraph.cli._render import Quantity
    from scenegraph.images import Quantity as Known

    assert get_args(Quantity) == get_args(Known)


IMPORTS = """
import sys
{}
public = [name for name in sys.modules if name.startswith("scenegraph.") and name.count(".") == 1]
import scenegraph as sg
try:
    sg.psnr(1.0, 2.0)
except TypeError as error:
    print(len(public) > 35, "of `psnr` must be" in str(error), sg.shapes.Sphere.__name__)
"""


@pytest.mark.parametrize(
    "line",
    [
        "from scenegraph.numerics import compact",
        "from scenegraph.shapes import Sphere",
        "from scenegraph.runs import open_run",
        "from scenegraph.settings import prepare",
        "from scenegraph import render",
        "from scenegraph import *; Sphere, fit, shapes",
        "import scenegraph.cli; import scenegraph.data",
        "import scenegraph as sg; sg.settings.make_scene",
        "import scenegraph as sg; assert {'render', 'shapes', 'Sphere'} <= set(dir(sg))",
    ],
)
def test_whatever_is_used_first_calls_are_checked(line):
    command = [sys.executable, "-c", IMPORTS.format(line)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True", "Sphere"], done.stdout + done.stderr


THREADS = """
import threading
import scenegraph as sg
names, errors = ["shapes", "render", "Sphere", "settings", "fit", "data", "runs", "losses"], []
def use(name):
    try:
        getattr(sg, name)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=use, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors, sg.preset("tiny").training.make_loss().weight_decay)
"""


def test_threads_may_use_names_first():
    command = [sys.executable, "-c", THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["[]", "0.0"], done.stdout + done.stderr


def test_unknown_names_are_attribute_errors():
    import scenegraph as sg

    for module in (sg, sg.settings):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            module.nothing  # noqa: B018
