"""Read a .keras file as data: the inference graph of a Sequential or Functional model of built-in layers.

The program is what `tf.function(model)(inputs)` runs when called from eager code without a device scope, with float
inputs and the weights on the default device and int32 inputs on the host. Neither TensorFlow nor Keras is imported
and nothing in the file is executed; the weights are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplace.errors import MalformedError, TargetError, UnreadableError
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import GraphDef
from simplace.importers.keras_config import (
    OPERATORS_MODULE,
    Config,
    Reference,
    check_model,
    is_input,
    is_model,
    layer_name,
    list_tensors,
    refuse_arguments,
    refuse_custom,
    refuse_options,
    shorten_text,
)
from simplace.importers.keras_layers import Layer, UnsupportedError, trace_layer, trace_operator
from simplace.importers.keras_tracing import KerasTrace, Value
from simplace.importers.saved_model import DEFAULT_DEVICE, HOST
from simplace.input_file import LARGEST_JSON, open_file, parse_json, read_members
from simplace.kernels.table_file import version_key
from simplace.program.program import Program

_HELP = "run the model in a script instead: simplace show script.py"
_CONFIG = "config.json"


def read_keras_file(path: str | Path, tensorflow: str | None = None) -> list[Program]:
    """Read the one program of a .keras file, with the ops that a version of TensorFlow makes of it (None: the newest).

    Raise `TargetError` for a file that is none, and for a model with a layer, an option or a dtype policy whose ops
    are not known here; the message names it.
    """
    config = _read_config(path)
    trace = KerasTrace(version_key(tensorflow or ""))
    try:
        model = check_model(config)
        outputs = _Model(trace).run(model)
        name = _model_name(model)
    except UnsupportedError as error:
        raise TargetError(f"{path}: {error}; {_HELP}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
        raise TargetError(
            f"{path}: config.json does not describe a model as Keras 3 does ({shorten_text(repr(error))}); {_HELP}"
        ) from error
    function = trace.function(f"__inference_{name}", outputs)
    devices = tuple(
        HOST if arg.dtype in (DataType.DT_INT32, DataType.DT_STRING) else DEFAULT_DEVICE for arg in function.inputs
    )
    return [Program(name, "function", GraphDef((), {function.name: function}), function.name, arg_devices=devices)]


def _read_config(path: str | Path) -> Any:
    try:
        members = read_members(path, {_CONFIG: LARGEST_JSON})
    except MalformedError as error:
        raise TargetError(f"{path} is not a .keras file, which is a zip archive; {_advise_on_format(path)}") from error
    except UnreadableError as error:
        raise TargetError(f"{path} cannot be read: {error}") from error
    if _CONFIG not in members:
        raise TargetError(f"{path} is not a .keras file: config.json is missing from the zip")
    try:
        return parse_json(members[_CONFIG])
    except MalformedError as error:
        raise TargetError(f"{path}: config.json is not valid JSON: {error}") from error
    except UnreadableError as error:
        raise TargetError(f"{path}: config.json cannot be read: {error}") from error


def _advise_on_format(path: str | Path) -> str:
    with open_file(path) as file:
        start = file.read(4)
    return "it is HDF5, the old format: load it and save it as .keras" if start == b"\x89HDF" else "save it again"


@dataclass(frozen=True, slots=True)
class _Call:
    """Record of one call of a layer: its number among the layer's calls, the node of the file, the tensors it takes."""

    layer: Config
    number: int
    node: Config
    inputs: list[Reference]


def _in_order(calls: Sequence[_Call], made: Mapping[Reference, Value]) -> Iterator[_Call]:
    """Yield calls round by round: in the order of the file, those whose inputs were `made` before the round began.

    The caller adds to `made` what a call has made before it takes the next.
    """
    missing = [{reference for reference in call.inputs if reference not in made} for call in calls]
    takers: dict[tuple[str, int], list[int]] = {}
    for i, references in enumerate(missing):
        for name, number in {reference[:2] for reference in references}:
            takers.setdefault((name, number), []).append(i)
    ready = [i for i, references in enumerate(missing) if not references]
    while ready:
        for i in ready:
            yield calls[i]
        done = [takers.pop((layer_name(calls[i].layer), calls[i].number), ()) for i in ready]
        following = sorted({i for each in done for i in each})
        for i in following:
            missing[i] = {reference for reference in missing[i] if reference not in made}
        ready = [i for i in following if not missing[i]]
    if any(missing):
        stuck = next(i for i, references in enumerate(missing) if references)
        raise UnsupportedError(f"the inputs of layer {layer_name(calls[stuck].layer)!r} are not connected")


class _Model:
    """Walk the layers of a model, and of the models inside it."""

    def __init__(self, trace: KerasTrace) -> None:
        self._trace = trace
        self._path: list[str] = []

    def run(self, model: Config) -> list[Value]:
        """Make the arguments and trace the whole model."""
        inputs = self._arguments(model)
        return self._walk(model, inputs)

    def _arguments(self, model: Config) -> list[Value]:
        layers = {layer_name(layer): layer for layer in model["config"]["layers"]}
        if model["class_name"] == "Sequential":
            wanted = [next(iter(layers))]
        else:
            wanted = [reference[0] for reference in _read_references(model["config"]["input_layers"])]
        return [self._argument(layers[name]) for name in wanted]

    def _argument(self, layer: Config) -> Value:
        if not is_input(layer):
            raise UnsupportedError("the model has no InputLayer, so its input shape is unknown")
        config = layer["config"]
        if config.get("sparse") or config.get("ragged"):
            raise UnsupportedError(f"the input {layer_name(layer)!r} is sparse or ragged")
        shape = tuple(config["batch_shape"])
        if not shape or shape[0] is not None:
            raise UnsupportedError(f"the input {layer_name(layer)!r} has a fixed batch size")
        return self._trace.input(layer_name(layer), dtypes.parse_dtype(config["dtype"]), shape)

    def _walk(self, model: Config, inputs: Sequence[Value]) -> list[Value]:
        name = _model_name(model)
        self._path.append(name)
        with self._trace.scope(name):
            walk = self._sequential if model["class_name"] == "Sequential" else self._functional
            outputs = walk(model["config"], inputs)
        self._path.pop()
        return outputs

    def _sequential(self, config: Config, inputs: Sequence[Value]) -> list[Value]:
        values = list(inputs)
        for layer in config["layers"]:
            if not is_input(layer):
                values = self._call(layer, values)
        return values

    def _functional(self, config: Config, inputs: Sequence[Value]) -> list[Value]:
        made: dict[Reference, Value] = {}
        for reference, value in zip(_read_references(config["input_layers"]), inputs, strict=True):
            made[reference] = value
        waiting = [
            _Call(layer, i, node, list_tensors(node["args"]))
            for layer in config["layers"]
            if not is_input(layer)
            for i, node in enumerate(layer["inbound_nodes"])
        ]
        for ready in _in_order(waiting, made):
            made.update(self._outputs(ready, made))
        outputs = [made[reference] for reference in _read_references(config["output_layers"])]
        if not outputs:
            raise UnsupportedError("the model has no outputs")
        return outputs

    def _outputs(self, call: _Call, made: Mapping[Reference, Value]) -> dict[Reference, Value]:
        refuse_arguments(call.layer, call.node)
        if call.layer.get("module") == OPERATORS_MODULE:
            outputs = [self._operate(call.layer, [_resolve_operand(one, made) for one in call.node["args"]])]
        else:
            outputs = self._call(call.layer, [made[reference] for reference in call.inputs])
        return {(layer_name(call.layer), call.number, k): value for k, value in enumerate(outputs)}

    def _call(self, layer: Config, inputs: Sequence[Value]) -> list[Value]:
        kind, name = str(layer["class_name"]), layer_name(layer)
        if is_model(layer):
            return self._walk(layer, inputs)
        try:
            refuse_custom(layer)
            refuse_options(kind, layer["config"])
            with self._trace.scope(name):
                return [trace_layer(Layer("/".join([*self._path, name]), kind, layer["config"], self._trace), inputs)]
        except UnsupportedError as error:
            raise UnsupportedError(f"layer {name!r} ({kind}): simplace does not support {error}") from error

    def _operate(self, layer: Config, operands: Sequence[Any]) -> Value:
        try:
            return trace_operator(self._trace, str(layer["class_name"]), operands)
        except UnsupportedError as error:
            raise UnsupportedError(f"operator {layer_name(layer)!r}: simplace does not support {error}") from error


def _model_name(model: Config) -> str:
    """Return the name of a model, which only a Sequential one need not have."""
    own = model["config"]
    return str(own.get("name") or "sequential") if model["class_name"] == "Sequential" else str(own["name"])


def _read_references(entries: Any) -> list[Reference]:
    """Read output references, which are one triple where there is one and a list of triples otherwise."""
    if entries and isinstance(entries[0], str):
        entries = [entries]
    return [(str(name), int(node), int(tensor)) for name, node, tensor in entries]


def _resolve_operand(argument: Any, made: Mapping[Reference, Value]) -> Any:
    tensors = list_tensors(argument)
    return made[tensors[0]] if len(tensors) == 1 else argument
