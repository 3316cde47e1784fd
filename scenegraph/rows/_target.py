"""Compilation of LLVM code for this machine, and its registration with XLA."""

import ctypes
import functools
import hashlib
import importlib
import os
import pathlib
import platform
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from ._entries import ENTRIES, entries_of, Entry
from ._log import compile_log


@functools.cache
def find_llvm() -> Any:
    """Returns LLVM, or `None` where llvmlite is missing or does not load: `jax.vmap` then maps."""
    try:
        return importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as reason:
        compile_log.warning(
            "llvmlite cannot be imported (%s): maps over rows compile and run slower. "
            "pip install llvmlite",
            reason,
        )
        return None


_lock = threading.Lock()
# Engines own the code of kernels, which stays as long as the process: XLA may call it at any time.
_engines: dict[str, "Future[Any]"] = {}
_entries: list[Entry] = []
_owners: list[Any] = []
_coming: "list[Future[None]]" = []
# LLVM works beside Python and XLA, on one kernel after the other: llvmlite lets in one thread.
_compiler = ThreadPoolExecutor(1, "scenegraph-kernels")


@functools.cache
def is_available() -> bool:
    """Returns true where native kernels can be compiled, and called by this XLA."""
    return find_llvm() is not None and _is_known_interface()


def _is_known_interface() -> bool:
    """Returns true if structures of XLA's interface are where the handler reads them."""
    try:
        header = pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
        known = "#define XLA_FFI_API_MAJOR 0\n" in header.read_text()
    except (AttributeError, OSError):
        known = False
    if not known:
        compile_log.warning("this JAX has another interface: maps over rows run slower.")
    return known


@functools.cache
def has_halves() -> bool:
    """Returns true if the processor converts numbers of half precision."""
    features = find_llvm().get_host_cpu_features()
    return features.get("f16c", platform.machine() in ("arm64", "aarch64"))


def allowed_threads() -> int:
    """Returns how many threads a kernel may use: those of `SCENEGRAPH_THREADS`, or any number.

    **Errors:** `ValueError` if it is no whole number from 1 on.
    """
    wanted = os.environ.get("SCENEGRAPH_THREADS") or str(2**20)
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ValueError(f"SCENEGRAPH_THREADS must be a whole number from 1 on; got {wanted!r}.")
    return int(wanted)


def checks_look_ups() -> bool:
    """Returns true if look-ups outside of their tables are to end the process, for debugging."""
    return os.environ.get("SCENEGRAPH_CHECK_LOOK_UPS", "0") == "1"


def register(code: str) -> str:
    """Returns the name by which XLA calls the function `kernel` of LLVM code.

    It is compiled in another thread, for which calls wait.
    """
    name = f"scenegraph_rows_{hashlib.sha256(code.encode()).hexdigest()[:32]}"
    with _lock:
        if name not in _engines:
            entry = _next_entry()
            jax.ffi.register_ffi_target(name, _capsule(entry.address), platform="cpu")
            _engines[name] = _compiler.submit(_make, code, entry)
    return name


# More entries are asked for while there are still so many: their compilation waits for its turn.
_FEW_ENTRIES = 24


def _next_entry() -> Entry:
    if not _owners:
        _add_entries()
    elif len(_entries) == _FEW_ENTRIES:
        _coming.append(_compiler.submit(_add_entries))
    while not _entries:
        if _coming:
            _coming.pop().exception()
        else:
            _add_entries()
    return _entries.pop()


def _add_entries() -> None:
    _owners.append(_compile(ENTRIES))
    # Before those that are left, so that the number of these is met again.
    _entries[:0] = entries_of(_owners[-1])


def _make(code: str, entry: Entry) -> Any:
    """Compiles a kernel, and opens its entry."""
    try:
        engine = _compile(code)
        entry.open(engine.get_function_address("kernel"))
    except BaseException:
        compile_log.exception("LLVM could not compile a kernel")
        entry.open(None)
        raise
    return engine


def _machine() -> Any:
    """Returns LLVM's description of this machine; a compiler owns the one it is given."""
    llvm = find_llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    name = llvm.get_host_cpu_name()
    return target.create_target_machine(cpu=name, features=features, opt=2, jit=True)


# Code of more lines is translated as it is: its scalars are computed once already. Measured: of a
# picture of six kinds, LLVM takes 6.1 s with all its passes and 2.5 s without, and a run 13.6 and
# 15.1 ms; of a mesh's gradient 11.3 and 4.8 s, and 428 and 394 ms.
_MOST_LINES = 1000


def _compile(code: str) -> Any:
    llvm, machine = find_llvm(), _machine()
    module = llvm.parse_assembly(code)
    module.triple = llvm.get_default_triple()
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    passes = builder.getModulePassManager()
    if code.count("\n") > _MOST_LINES:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _capsule(address: int) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(address, None, None)
