"""Compilation of LLVM code for this machine, and its registration with XLA."""

import ctypes
import functools
import hashlib
import importlib
import logging
import os
import threading
from typing import Any

import jax


@functools.cache
def find_llvm() -> Any:
    """Returns LLVM, or `None` where llvmlite is missing or does not load: `jax.vmap` then maps."""
    try:
        return importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as reason:
        logging.getLogger("scenegraph.compile").warning(
            "llvmlite cannot be imported (%s): maps over rows compile and run slower. "
            "pip install llvmlite",
            reason,
        )
        return None


_lock = threading.Lock()
# Engines own the code of kernels, which stays as long as the process: XLA may call it at any time.
_engines: dict[str, Any] = {}


def is_available() -> bool:
    """Returns true where native kernels can be compiled."""
    return find_llvm() is not None


def allowed_threads() -> int:
    """Returns how many threads a kernel may use: those of `SCENEGRAPH_THREADS`, or any number."""
    return int(os.environ.get("SCENEGRAPH_THREADS") or 2**20)


def register(code: str) -> str:
    """Compiles LLVM code and returns the name by which XLA calls its function `kernel`."""
    name = f"scenegraph_rows_{hashlib.sha256(code.encode()).hexdigest()[:32]}"
    with _lock:
        if name not in _engines:
            _engines[name] = engine = _compile(code)
            address = engine.get_function_address("kernel")
            jax.ffi.register_ffi_target(name, _capsule(address), platform="cpu")
    return name


def _machine() -> Any:
    """Returns LLVM's description of this machine; a compiler owns the one it is given."""
    llvm = find_llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    name = llvm.get_host_cpu_name()
    return target.create_target_machine(cpu=name, features=features, opt=2, jit=True)


def _compile(code: str) -> Any:
    llvm, machine = find_llvm(), _machine()
    module = llvm.parse_assembly(code)
    module.triple = llvm.get_default_triple()
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
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
