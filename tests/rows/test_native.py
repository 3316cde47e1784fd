"""Native kernels: mathematics, rows of any number, threads, the structures of XLA's interface."""

import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax import lax

from scenegraph.rows import _target, map_rows


def mapped(function, *rows):
    return jax.jit(lambda *rows: map_rows(lambda _, row: function(*row), (), rows))(*rows)


def native_code(function, *rows):
    text = jax.jit(lambda *rows: map_rows(lambda _, row: function(*row), (), rows)).lower(*rows)
    return re.findall(r"scenegraph_rows_\w+", text.as_text())


# --- Mathematics


WIDE = np.concatenate([np.linspace(-30, 30, 4001), np.logspace(-30, 4, 500), [0.0, 2.0**15 * 3]])
FUNCTIONS = {
    "acos": (jnp.arccos, np.arccos, np.linspace(-1, 1, 4001)),
    "acosh": (jnp.arccosh, np.arccosh, np.linspace(1, 30, 4001)),
    "asin": (jnp.arcsin, np.arcsin, np.linspace(-1, 1, 4001)),
    "asinh": (lax.asinh, np.arcsinh, WIDE),
    "atan": (lax.atan, np.arctan, WIDE),
    "atanh": (lax.atanh, np.arctanh, np.linspace(-0.999, 0.999, 4001)),
    "cbrt": (lax.cbrt, np.cbrt, WIDE),
    "cos": (jnp.cos, np.cos, WIDE),
    "cosh": (lax.cosh, np.cosh, WIDE),
    "erf": (lax.erf, scipy.special.erf, np.concatenate([WIDE, np.linspace(-7, 7, 4001)])),
    "erf_inv": (lax.erf_inv, scipy.special.erfinv, np.linspace(-0.9999, 0.9999, 4001)),
    "exp": (jnp.exp, np.exp, np.linspace(-86, 88, 8001)),
    "exp2": (lax.exp2, np.exp2, np.linspace(-100, 100, 4001)),
    "expm1": (
        jnp.expm1,
        np.expm1,
        np.concatenate([np.linspace(-30, 80, 4001), np.logspace(-30, 1)]),
    ),
    "log": (
        jnp.log,
        np.log,
        np.concatenate([np.linspace(0.01, 30, 4001), np.logspace(-37, 38, 900)]),
    ),
    "log1p": (
        jnp.log1p,
        np.log1p,
        np.concatenate([np.linspace(-0.99, 30, 4001), np.logspace(-30, 30)]),
    ),
    "logistic": (lax.logistic, lambda x: 1 / (1 + np.exp(-x)), np.linspace(-80, 80, 4001)),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), np.logspace(-30, 30, 900)),
    "sin": (jnp.sin, np.sin, np.concatenate([WIDE, np.logspace(5, 30, 500)])),
    "sinh": (lax.sinh, np.sinh, WIDE),
    "tan": (jnp.tan, np.tan, WIDE),
    "tanh": (jnp.tanh, np.tanh, WIDE),
}
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1e38, -1e38, 3e-39])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_a_few_units_in_the_last_place(name):
    ours, truth, x = FUNCTIONS[name]
    x = x.astype(np.float32)
    assert native_code(ours, jnp.asarray(x))
    with np.errstate(all="ignore"):
        expected = truth(x.astype(np.float64))
        unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    finite = np.isfinite(expected) & (np.abs(expected) < 3e38)
    found = np.asarray(mapped(ours, jnp.asarray(x)), np.float64)[finite]
    # The inverse of the error function has the polynomial of XLA, which is no better.
    limit = 16 if name == "erf_inv" else 4
    assert np.max(np.abs(found - expected[finite]) / unit[finite]) < limit


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_in_double_precision(x64, name):
    ours, truth, x = FUNCTIONS[name]
    assert native_code(ours, jnp.asarray(x))
    with np.errstate(all="ignore"):
        # `scipy.special` has no more than double precision.
        more = float if name.startswith("erf") else np.longdouble
        expected = truth(x.astype(more))
        unit = np.spacing(np.abs(expected).astype(float))
    found = np.asarray(mapped(ours, jnp.asarray(x)))
    assert found.dtype == float
    finite = np.isfinite(expected) & np.isfinite(unit)
    error = np.abs(found[finite] - expected[finite]) / unit[finite]
    assert np.max(error) < (16 if name == "erf_inv" else 4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_in_double_precision(x64, name):
    ours, x = FUNCTIONS[name][0], jnp.asarray(SPECIAL)
    np.testing.assert_allclose(mapped(ours, x), jax.jit(ours)(x), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_jax(name):
    ours, truth, _ = FUNCTIONS[name]
    x = jnp.asarray(SPECIAL, jnp.float32)
    found, expected = np.asarray(mapped(ours, x)), np.array(jax.jit(ours)(x))
    if np.isnan(expected[-1]):
        # Some versions of XLA have no arcus sine of a denormal number.
        with np.errstate(all="ignore"):
            expected[-1] = truth(SPECIAL[-1])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_powers_and_angles():
    x, y = (
        np.ravel(x)
        for x in np.meshgrid(*2 * [np.concatenate([SPECIAL[:-1], [2, -2, 3, 2.5, 0.1]])])
    )
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    for function in (jnp.power, jnp.arctan2, jnp.fmod, jnp.nextafter, jnp.maximum, jnp.minimum):
        assert native_code(function, x, y)
        found, expected = np.asarray(mapped(function, x, y)), np.asarray(jax.jit(function)(x, y))
        np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=str(function))
    draw = np.random.default_rng(0)
    x, y = (draw.uniform(*ends, 4096).astype(np.float32) for ends in ((0.01, 10), (-8, 8)))
    for function, truth in ((jnp.power, np.power), (jnp.arctan2, np.arctan2)):
        expected = truth(x.astype(np.float64), y.astype(np.float64))
        unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
        assert np.max(np.abs(np.asarray(mapped(function, x, y)) - expected) / unit) < 4


def test_integers_divide_shift_and_convert_as_those_of_jax():
    numbers = [0, 1, -1, 2, 31, 32, 33, -32, 2**31 - 1, -(2**31), 7, -7]
    x, y = (np.ravel(x) for x in np.meshgrid(numbers, numbers))
    for dtype in (np.int32, np.uint32):
        a, b = (jnp.asarray(z.astype(np.int64).astype(dtype)) for z in (x, y))
        for function in (
            lax.div,
            lax.rem,
            lax.shift_left,
            lax.shift_right_logical,
            lax.shift_right_arithmetic,
            lax.bitwise_xor,
            lax.max,
            lambda a, b: (a < b, a.astype(jnp.float32), jnp.sign(a), a**3, jnp.clip(a, 3, 9)),
        ):
            assert native_code(function, a, b)
            found, expected = mapped(function, a, b), jax.jit(function)(a, b)
            jax.tree.map(np.testing.assert_array_equal, found, expected)
    floats = jnp.asarray([np.nan, np.inf, -np.inf, 1e20, -1e20, 2.9, -2.9, 0.5], jnp.float32)
    for kind in (jnp.int32, jnp.uint32, jnp.bool_):
        convert = lambda x, kind=kind: x.astype(kind)
        np.testing.assert_array_equal(mapped(convert, floats), jax.jit(convert)(floats))


# --- Rows and threads


def everything(shared, row):
    v, n, flag = row
    inner = v @ shared + jnp.where(flag, v[0], n)
    return {"v": v / 3 + inner, "n": n + 1, "flag": flag ^ (v[1] > 0), "m": jnp.outer(v, v)}


def rows_of(count):
    draw = np.random.default_rng(count)
    v = jnp.asarray(draw.normal(size=(count, 3)), jnp.float32)
    return v, jnp.arange(count), jnp.asarray(draw.uniform(size=count) < 0.5)


def test_any_number_of_rows_has_one_kernel():
    shared = jnp.array([1.0, -2.0, 0.5])
    call = jax.jit(lambda shared, rows: map_rows(everything, shared, rows))
    call(shared, rows_of(5))
    kernels = len(_target._engines)
    for count in (1, 7, 8, 9, 1023, 1024, 1025, 5003):
        rows = rows_of(count)
        expected = jax.vmap(everything, (None, 0))(shared, rows)
        close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
        jax.tree.map(close, call(shared, rows), expected)
    assert len(_target._engines) == kernels


def test_sums_do_not_depend_on_threads(monkeypatch):
    x = jax.random.normal(jax.random.key(0), (50_001, 3))
    results = []
    for threads in ("1", "2", "8"):
        monkeypatch.setenv("SCENEGRAPH_THREADS", threads)
        loss = lambda s, x: jnp.sum(map_rows(lambda s, x: jnp.sin(x @ s), s, x))
        results.append(jax.jit(jax.grad(loss))(jnp.array([1.0, 2.0, 3.0]), x))
    for result in results[1:]:
        np.testing.assert_array_equal(results[0], result)
    with jax.enable_x64(True):
        truth = jnp.sum(jnp.cos(x.astype(float) @ jnp.array([1.0, 2.0, 3.0]))[:, None] * x, axis=0)
    np.testing.assert_allclose(results[0], truth, rtol=1e-4)


@pytest.mark.usefixtures("without_kernels")
def test_without_llvmlite_results_are_the_same():
    rows = rows_of(100)
    call = lambda rows: map_rows(lambda s, row: everything(s, row), jnp.ones(3), rows)
    assert "scenegraph_rows" not in jax.jit(call).lower(rows).as_text()
    expected = jax.vmap(everything, (None, 0))(jnp.ones(3), rows)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    jax.tree.map(close, jax.jit(call)(rows), expected)


def test_a_missing_llvmlite_is_said_once_and_changes_nothing():
    code = """
import sys; sys.modules["llvmlite"] = None
import jax, jax.numpy as jnp
from scenegraph.rows import map_rows
call = jax.jit(lambda x: map_rows(lambda s, x: jnp.sin(x) * 2, None, x))
print(float(jnp.sum(call(jnp.ones(3)))), float(jnp.sum(call(jnp.ones(5)))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [float(x) for x in done.stdout.split()] == pytest.approx([5.0488, 8.4147], abs=1e-3)
    assert done.stderr.count("pip install llvmlite") == 1


@pytest.mark.parametrize("threads", ["0", "-1", "many", "1.5"])
def test_strange_numbers_of_threads_are_refused_by_name(monkeypatch, threads):
    monkeypatch.setenv("SCENEGRAPH_THREADS", threads)
    with pytest.raises(ValueError, match="SCENEGRAPH_THREADS must be a whole number from 1 on"):
        mapped(jnp.sin, jnp.ones(3))


# --- XLA's interface


def offsets(text, name, known):
    """Offsets of the fields of a structure of a C header, and its size."""
    body = re.search(rf"struct {name} {{(.*?)\n}}", re.sub(r"//.*", "", text), re.DOTALL)
    assert body
    place, fields = 0, {}
    for line in filter(None, map(str.strip, re.split(r"[;\n]", body[1]))):
        if call := re.match(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", line):
            kind, field = "pointer*", call[1]
        else:
            found = re.match(r"(?:const |struct )?(.*?[\s*])(\w+)$", line)
            assert found
            kind, field = found.groups()
        size = 8 if "*" in kind else known[kind.strip()]
        place = -(-place // min(size, 8)) * min(size, 8)
        fields[field] = place
        place += size
    return fields, -(-place // 8) * 8


def test_another_interface_has_no_kernels(monkeypatch, tmp_path, caplog):
    header = tmp_path / "xla/ffi/api/c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 1\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    assert not _target._is_known_interface()
    assert "another interface" in caplog.text


def test_offsets_are_those_of_the_header():
    text = (pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text()
    assert "#define XLA_FFI_API_MAJOR 0" in text
    known = {
        "size_t": 8,
        "int64_t": 8,
        "int": 4,
        "XLA_FFI_DataType": 4,
        "XLA_FFI_ExecutionStage": 4,
    }
    known |= {"XLA_FFI_Extension_Type": 4, "XLA_FFI_Handler_Traits": 4, "XLA_FFI_TypeId": 8}
    known["XLA_FFI_InternalExtension_Type"] = 4
    # What the header of JAX 0.10 calls an `Extension_Base`, later ones call an `InternalExtension`.
    base = "Extension_Base" if "struct XLA_FFI_Extension_Base {" in text else "InternalExtension"
    for name in (base, "Api_Version", "Args", "Rets", "Attrs"):
        known[f"XLA_FFI_{name}"] = offsets(text, f"XLA_FFI_{name}", known)[1]
    fields = lambda name: offsets(text, f"XLA_FFI_{name}", known)[0]
    frame, array, buffer = fields("CallFrame"), fields("Args"), fields("Buffer")
    assert (frame["extension_start"], frame["api"], frame["ctx"]) == (8, 16, 24)
    assert frame["args"] + array["args"] == 72
    assert frame["rets"] + fields("Rets")["rets"] == 112
    assert (buffer["data"], buffer["dims"]) == (24, 40)
    metadata, version = fields("Metadata"), fields("Api_Version")
    assert fields("Metadata_Extension")["metadata"] == 24
    assert metadata["api_version"] + version["major_version"] == 24
    assert metadata["api_version"] + version["minor_version"] == 28
    assert metadata["traits"] == 32
    api = fields("Api")
    assert api["XLA_FFI_ThreadPool_Schedule"] == 136
    assert api["XLA_FFI_ThreadPool_NumThreads"] == 144
    schedule, count = fields("ThreadPool_Schedule_Args"), fields("ThreadPool_NumThreads_Args")
    assert (schedule["ctx"], schedule["task"], schedule["data"]) == (16, 24, 32)
    assert (count["ctx"], count["num_threads"]) == (16, 24)


def test_a_sum_over_nothing_is_native(caplog):
    """Such as over the lights of a scene that has none."""
    rows = jnp.arange(12.0).reshape(4, 3)

    def function(shared, row):
        none = jnp.zeros((0, 3)) * row
        return shared + row + jnp.sum(none, axis=0), jnp.sum(none)

    with caplog.at_level("INFO", "scenegraph.compile"):
        total, nothing = jax.jit(lambda x: map_rows(function, jnp.ones(3), x))(rows)
    np.testing.assert_array_equal(total, 1 + rows)
    np.testing.assert_array_equal(nothing, np.zeros(4))
    assert "not native" not in caplog.text
