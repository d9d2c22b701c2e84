"""Check whether functions can be in one library, with TensorFlow's messages.

Mirrors `FunctionLibraryDefinition::AddLibrary` and `FunctionDefsEqual` of tensorflow/core/framework/function.cc, and
`EqualNodeDef` of tensorflow/core/util/equal_graph_def.cc.
"""

from __future__ import annotations

from typing import Any

from simplace.graph import protos


def find_library_fault(library: Any) -> str:
    """Return why a `FunctionDefLibrary` message contradicts itself, "" if it does not."""
    first: dict[str, Any] = {}
    compared: dict[str, bytes] = {}  # of the functions whose name is there twice
    for function in library.function:
        name = function.signature.name
        known = first.setdefault(name, function)
        if known is function:
            continue
        if name not in compared:
            compared[name] = _encode_for_comparison(known)
        if _encode_for_comparison(function) != compared[name]:
            return different_function(name)
    gradients: dict[str, str] = {}
    for gradient in library.gradient:
        name, given = gradient.function_name, gradient.gradient_func
        has = gradients.setdefault(name, given) or given
        if has != given:
            return (
                f"Cannot assign gradient function '{given}' to '{name}' because it already has gradient function "
                f"'{has}'"
            )
    return ""


def different_function(name: str) -> str:
    """Return the refusal of a function that differs from one of its name."""
    return f"Cannot add function '{name}' because a different function with the same name already exists."


def find_gradient_fault(library: Any) -> str:
    """Return what Python's TensorFlow refuses of gradients (`from_library`, python/framework/function.py)."""
    names = {function.signature.name for function in library.function}
    for gradient in library.gradient if names else ():
        for name in (gradient.function_name, gradient.gradient_func):
            if name not in names:
                return f"FunctionDefLibrary missing '{name}' FunctionDef"
    if names and names <= {gradient.function_name for gradient in library.gradient if gradient.gradient_func}:
        return "FunctionDefLibrary contains cyclic gradient functions!"
    return ""


def _encode_for_comparison(function: Any) -> bytes:
    """Encode what two functions of one name must have in common: nodes by name, attributes that are set."""
    message = protos.message_class("FunctionDef").FromString(function.SerializeToString())
    for name in ("arg_attr", "resource_arg_unique_id"):
        message.ClearField(name)
    _drop_unset(message.attr)
    nodes = sorted(message.node_def, key=lambda node: str(node.name))
    message.ClearField("node_def")
    for node in nodes:
        copy = message.node_def.add()
        copy.CopyFrom(node)
        copy.ClearField("input")
        is_control = [text.startswith("^") for text in node.input]
        copy.input.extend(text for text, control in zip(node.input, is_control, strict=True) if not control)
        copy.input.extend(sorted({text for text, control in zip(node.input, is_control, strict=True) if control}))
        for key in [key for key in copy.attr if key.startswith("_")]:
            del copy.attr[key]
        for name in ("experimental_debug_info", "experimental_type"):
            copy.ClearField(name)
    return bytes(message.SerializeToString(deterministic=True))


def _drop_unset(attrs: Any) -> None:
    for key in [key for key, value in attrs.items() if value.WhichOneof("value") is None]:
        del attrs[key]
