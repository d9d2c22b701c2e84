"""Which of the functions that stand in for each other a call calls, by the type of the device that it is on.

Mirrors grappler/optimizers/implementation_selector.cc and function_api_info.cc of tensorflow/core, by which the LSTM
and the GRU of Keras 2 become those of cuDNN on a GPU: Grappler does so after the graph is placed.
"""

from __future__ import annotations

from collections.abc import Mapping

from simplace.graph.flatrep import order_functions
from simplace.graph.node_def import FunctionDef
from simplace.graph.op_kinds import IMPLEMENTS, PREFERRED_DEVICE

LEAST_NODES = 4  # of a graph that Grappler optimizes (kDefaultMinGraphNodes, meta_optimizer.cc)
_PAIRED = ("forward_function_name", "backward_function_name")  # of a backward, and of a forward function
_Kind = tuple[bool, ...]  # which of the two a function has; an inference function has neither


def select_implementation(function: FunctionDef, device_type: str, library: Mapping[str, FunctionDef]) -> FunctionDef:
    """Return the function that TensorFlow calls in the place of `function`, for a call on a device of that type.

    It is the first one of the same interface, and of the same kind (inference, forward or backward), that prefers the
    type, and else `function`. Nothing is selected where two that stand in for each other have different types.
    """
    if IMPLEMENTS not in function.attrs or not _are_consistent(library):
        return function
    wanted = (function.attrs[IMPLEMENTS], _kind_of(function))
    alike = [name for name, one in library.items() if (one.attrs.get(IMPLEMENTS), _kind_of(one)) == wanted]
    preferred = [name for name in alike if library[name].attrs.get(PREFERRED_DEVICE) == device_type.encode()]
    if len(preferred) > 1:
        preferred = [name for name in order_functions(library) if name in preferred]
    return library[preferred[0]] if preferred else function


def _are_consistent(library: Mapping[str, FunctionDef]) -> bool:
    """Return whether all functions of an interface have one signature (`ValidateSignatures`).

    What a forward function keeps for the backward one, after its results, may differ.
    """
    known: dict[tuple[object, ...], object] = {}
    for function in library.values():
        if IMPLEMENTS in function.attrs:
            kind, (inputs, outputs) = _kind_of(function), function.call_types
            is_backward, is_forward = kind
            types = (None if is_backward else inputs, None if is_forward else outputs)
            if known.setdefault((function.attrs[IMPLEMENTS], kind), types) != types:
                return False
    return True


def _kind_of(function: FunctionDef) -> _Kind:
    return tuple(key in function.attrs for key in _PAIRED)
