"""Interfaces of JAX that its versions may change, in one place, with what stands in for each.

`tests/jax_interfaces.toml` says why each is used, and with which versions. A version that lacks one
gets a warning and a simpler way, with the same results:

- without `trace_state_clean`, a function counts as being traced, and is compiled by JAX alone;
- without `error_checks` or `nan_error_check`, `checkify` does not look for NaN in what maps return;
- without any of the others, maps over rows are `jax.vmap`, and sums over faces take all faces.
"""

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from typing import Any, TYPE_CHECKING


_gone: list[str] = []


def _find(module: str, name: str, otherwise: Any = None) -> Any:
    """Returns an interface of JAX, or what stands in for one that this version lacks."""
    try:
        found = vars(importlib.import_module(module))
    except ImportError:
        found = {}
    if name not in found:
        _gone.append(f"{module}.{name}")
    return found.get(name, otherwise)


if TYPE_CHECKING:
    from jax.extend.core import (
        ClosedJaxpr as ClosedJaxpr,
        jaxpr_as_fun as jaxpr_as_fun,
        jaxprs_in_params as jaxprs_in_params,
        Literal as Literal,
        Primitive as Primitive,
    )
    from jax.interpreters import ad as ad, batching as batching, mlir as mlir
    from jax.interpreters.partial_eval import dce_jaxpr as dce_jaxpr, dce_rules as dce_rules
else:
    ClosedJaxpr = _find("jax.extend.core", "ClosedJaxpr", object)
    jaxpr_as_fun = _find("jax.extend.core", "jaxpr_as_fun")
    jaxprs_in_params = _find("jax.extend.core", "jaxprs_in_params")
    Literal = _find("jax.extend.core", "Literal", object)
    Primitive = _find("jax.extend.core", "Primitive", object)
    ad = _find("jax.interpreters", "ad")
    batching = _find("jax.interpreters", "batching")
    mlir = _find("jax.interpreters", "mlir")
    dce_jaxpr = _find("jax.interpreters.partial_eval", "dce_jaxpr")
    dce_rules = _find("jax.interpreters.partial_eval", "dce_rules")
    _find("jax.interpreters.ad", "UndefinedPrimal")
    _find("jax.interpreters.ad", "Zero")
    _find("jax.interpreters.ad", "is_undefined_primal")
    _find("jax.interpreters.ad", "primitive_jvps")
    _find("jax.interpreters.ad", "primitive_transposes")
    _find("jax.interpreters.batching", "primitive_batchers")
    _find("jax.interpreters.mlir", "lower_fun")
    _find("jax.interpreters.mlir", "register_lowering")


def lower_when_compiled(primitive: Any) -> None:
    """Says that the jaxpr within a primitive is lowered with it.

    From JAX 0.12 on it may hold primitives that consist of others, such as `jnp.searchsorted`, of
    which all that contain any are asked to be rid before compilation, unless they say otherwise.
    """
    primitive.is_high = lambda *_, **__: False


# True where equations can be read and changed, and primitives made.
HAS_PRIMITIVES = not _gone


def _never_clean() -> bool:
    """Returns what is safe to say where it is not known: that something is traced."""
    return False


trace_state_clean: Callable[[], bool] = _find("jax._src.core", "trace_state_clean", _never_clean)
checkify_rules: dict[Any, Any] | None = _find("jax._src.checkify", "error_checks")
nan_error_check: Callable[..., Any] | None = _find("jax._src.checkify", "nan_error_check")


if _gone:
    warnings.warn(
        f"JAX {importlib.metadata.version('jax')} lacks {', '.join(_gone)}, which this version of "
        "scenegraph uses. Pictures and derivatives are computed in a simpler way: the same, but "
        "slower. A newer scenegraph may know this JAX.",
        stacklevel=2,
    )
