"""The edits that put layers of Keras on devices: a call around each, and the functions that are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from simplace.suggestions.edits import Replacement
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.layer_units import Makers
from simplace.suggestions.scope_changes import tensorflow_name
from simplace.suggestions.source_file import ON_DEVICE, UPDATE_IN_PLACE, SourceFile

_OPTIMIZER = re.compile(r"(^|\.)optimizers\.(legacy\.)?[A-Z]\w*$")

# A layer's variables are made in `build`; its ops in `call`, each time that a model is called.
_SCOPES = '''
def on_device(device, layer):
    """Make the variables of a Keras layer, and its ops, under a device scope."""

    def put_under_scope(method):
        @functools.wraps(method)
        def method_there(*args, **kwargs):
            with tf.device(device):
                return method(*args, **kwargs)

        return method_there

    layer.build, layer.call = put_under_scope(layer.build), put_under_scope(layer.call)
    return layer
'''

# A tape makes gradients outside of the scope, unless they are custom.
_SCOPES_WITH_GRADIENTS = '''
def on_device(device, layer):
    """Make the variables of a Keras layer, its ops and their gradients under a device scope."""
    build, call = layer.build, layer.call

    @functools.wraps(build)
    def build_there(*args, **kwargs):
        with tf.device(device):
            return build(*args, **kwargs)

    @functools.wraps(call)
    def call_there(*args, **kwargs):
        given = tf.nest.flatten((args, kwargs))
        places = [i for i, one in enumerate(given) if tf.is_tensor(one)]

        @tf.custom_gradient
        def compute(*tensors):
            for i, tensor in zip(places, tensors):
                given[i] = tensor
            new_args, new_kwargs = tf.nest.pack_sequence_as((args, kwargs), given)
            outputs = call(*new_args, **new_kwargs)

            def differentiate(*upstream, variables=()):
                with tf.device(device):
                    found = tf.gradients(tf.nest.flatten(outputs), [*tensors, *variables], upstream)
                return found[: len(tensors)], found[len(tensors) :]

            return outputs, differentiate

        with tf.device(device):
            if tf.executing_eagerly():
                return call(*args, **kwargs)
            return compute(*(given[i] for i in places))

    layer.build, layer.call = build_there, call_there
    return layer
'''

# Keras sends all gradients through one op, and computes updates outside of scopes.
_UPDATES = '''
def update_in_place(optimizer):
    """Keep the state of a Keras optimizer, and compute its updates, on the device of each variable."""
    optimizer = tf.keras.optimizers.get(optimizer)
    add_variable = optimizer.add_variable_from_reference

    def add_there(reference_variable, *args, **kwargs):
        with tf.device(reference_variable.handle.device):
            return add_variable(reference_variable, *args, **kwargs)

    def update_there(gradients, variables, learning_rate):
        for gradient, variable in zip(gradients, variables):
            with tf.device(variable.handle.device):
                optimizer.update_step(gradient, variable, learning_rate)

    optimizer.add_variable_from_reference = add_there
    optimizer._backend_update_step = update_there
    return optimizer
'''


def can_hold_functions(source: SourceFile) -> bool:
    """Return whether the functions can stand in a file: it imports TensorFlow at its top, and has none of them yet."""
    names = {node.name for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)}
    has_import = source.find_import(source.find_module("tensorflow")) is not None
    return has_import and not names & {ON_DEVICE, UPDATE_IN_PLACE}


def find_optimizers(evidence: Evidence) -> list[tuple[SourceFile, ast.expr]]:
    """Find the calls that make Keras's optimizers, or the names of optimizers that a model is compiled with."""
    calls = [(source, call) for source in evidence.files if can_hold_functions(source) for call in source.calls]
    made: list[tuple[SourceFile, ast.expr]] = [
        (source, call) for source, call in calls if _OPTIMIZER.search(source.segment(call.func))
    ]
    if made:
        return made
    compiled = [(source, call) for source, call in calls if source.segment(call.func).endswith(".compile")]
    found = [(source, _find_optimizer(call)) for source, call in compiled]
    return [(source, given) for source, given in found if isinstance(given, ast.Constant)]


def write_layer_edits(
    makers: Makers, device_of: Mapping[str, str], optimizers: Sequence[tuple[SourceFile, ast.expr]], stay: str,
    *, has_gradients: bool,
) -> tuple[Replacement, ...]:  # fmt: skip
    """Return the edits that put layers, by name, on devices; what a call makes besides goes to the device `stay`."""
    edits: list[Replacement] = []
    calls = list(dict.fromkeys(makers.calls[name] for name in device_of))
    for source in dict.fromkeys(source for source, _ in [*calls, *optimizers]):
        orders: list[str] = []
        for call in (call for file, call in calls if file is source):
            devices = [device_of.get(name, stay) for name in makers.list_layers(call)]
            if len(set(devices)) > 1:
                orders.append(_write_order(devices))
            device = f'"{devices[0]}"' if len(set(devices)) == 1 else f"next({_name_order(len(orders))})"
            edits += _put_around(source, call, f"{ON_DEVICE}({device}, ")
        updated = [given for file, given in optimizers if file is source]
        edits += [edit for given in updated for edit in _put_around(source, given, f"{UPDATE_IN_PLACE}(")]
        scopes = _SCOPES_WITH_GRADIENTS if has_gradients else _SCOPES
        bodies = [scopes] * any(file is source for file, _ in calls) + [_UPDATES] * bool(updated)
        edits += insert_functions(source, orders, bodies)
    return tuple(edits)


def _find_optimizer(call: ast.Call) -> ast.expr | None:
    named = (keyword.value for keyword in call.keywords if keyword.arg == "optimizer")
    return next(named, call.args[0] if call.args else None)


def _put_around(source: SourceFile, node: ast.expr, before: str) -> Iterator[Replacement]:
    last = node.end_lineno or node.lineno
    start = (node.lineno, source.column(node.lineno, node.col_offset))
    end = (last, source.column(last, node.end_col_offset or 0))
    yield Replacement(source.name, start, start, before)
    yield Replacement(source.name, end, end, ")")


def insert_functions(source: SourceFile, orders: Sequence[str], bodies: Sequence[str]) -> Iterator[Replacement]:
    """Insert imports before the first import of the file's top, the functions after the last one of TensorFlow's."""
    first = next(node for node in source.tree.body if _is_import(node))
    modules = ["functools"] * any("functools" in body for body in bodies) + ["itertools"] * bool(orders)
    missing = [module for module in modules if source.find_module(module) != module]
    if missing:
        lines = "".join(f"import {module}{source.newline}" for module in missing)
        yield Replacement(source.name, (first.lineno, 0), (first.lineno, 0), lines)
    last = _find_end_of_imports(source)
    named = [f"{_name_order(i)} = {order}" for i, order in enumerate(orders, 1)]
    text = "".join(f"\n{body}" for body in bodies) + ("\n\n" + "\n".join(named) + "\n") * bool(named)
    text = text.replace("tf.", f"{tensorflow_name(source)}.").replace("\n", source.newline)
    yield Replacement(source.name, (last + 1, 0), (last + 1, 0), text)


def _is_import(node: ast.stmt) -> bool:
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return isinstance(node, (ast.Import, ast.ImportFrom)) and not is_future


def _find_end_of_imports(source: SourceFile) -> int:
    """Return the last line of the imports at the top that follow each other, from TensorFlow's on."""
    body = source.tree.body
    statement = source.find_import(source.find_module("tensorflow"))
    assert statement is not None, "can_hold_functions"
    number = body.index(statement)
    while number + 1 < len(body) and _is_import(body[number + 1]):
        number += 1
    return body[number].end_lineno or body[number].lineno


def _name_order(number: int) -> str:
    return f"layer_devices_{number}" if number > 1 else "layer_devices"


def _write_order(devices: Sequence[str]) -> str:
    """Return the iterator over the devices of the layers that one call makes, again and again.

    >>> _write_order(["/GPU:0", "/GPU:0", "/GPU:1"])
    'itertools.cycle(2 * ["/GPU:0"] + ["/GPU:1"])'
    """
    runs = [(device, len(list(same))) for device, same in groupby(devices)]
    return f"itertools.cycle({' + '.join(_write_run(device, count) for device, count in runs)})"


def _write_run(device: str, count: int) -> str:
    return f'{count} * ["{device}"]' if count > 1 else f'["{device}"]'
