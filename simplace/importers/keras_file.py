"""Read a .keras file as data: the inference graph of a Sequential or Functional model of built-in layers.

The program is what `tf.function(model)(inputs)` runs when called from eager code without a device scope, with float
inputs and the weights on the default device and int32 inputs on the host. Neither TensorFlow nor Keras is imported
and nothing in the file is executed; the weights are not read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simplace.errors import TargetError
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import GraphDef
from simplace.importers.keras_layers import Layer, UnsupportedError, call, operate
from simplace.importers.keras_trace import Trace, Value
from simplace.importers.program import Program
from simplace.importers.saved_model import DEFAULT_DEVICE, HOST
from simplace.kernels.table_file import version_key

_MODELS = frozenset({"Sequential", "Functional", "Model"})
_OPERATORS = "keras.src.ops.numpy"
_HELP = "run the model in a script instead: simplace show script.py"
Config = Mapping[str, Any]


def read(path: str | Path, tensorflow: str | None = None) -> list[Program]:
    """Read the one program of a .keras file, with the ops that a version of TensorFlow makes of it (None: the newest).

    Raise `TargetError` for a file that is none, and for a model with a layer, an option or a dtype policy whose ops
    are not known here; the message names it.
    """
    model = _config(path)
    trace = Trace(version_key(tensorflow or ""))
    try:
        outputs = _Model(trace).run(model)
    except UnsupportedError as error:
        raise TargetError(f"{path}: {error}; {_HELP}") from error
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise TargetError(
            f"{path}: config.json does not describe a model as Keras 3 does ({error!r}); {_HELP}"
        ) from error
    name = str(model["config"].get("name", "model"))
    function = trace.function(f"__inference_{name}", outputs)
    devices = tuple(
        HOST if arg.dtype in (DataType.DT_INT32, DataType.DT_STRING) else DEFAULT_DEVICE for arg in function.inputs
    )
    return [Program(name, "function", GraphDef((), {function.name: function}), function.name, arg_devices=devices)]


def _config(path: str | Path) -> Config:
    try:
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise TargetError(f"{path} is no .keras file, which would be a zip; {_what(path)}") from error
    except KeyError as error:
        raise TargetError(f"{path} is no .keras file: config.json is missing from the zip") from error
    except ValueError as error:
        raise TargetError(f"{path}: config.json is no JSON: {error}") from error
    if not isinstance(config, Mapping) or config.get("class_name") not in _MODELS or "layers" not in config["config"]:
        kind = config.get("class_name") if isinstance(config, Mapping) else type(config).__name__
        raise TargetError(f"{path} holds a {kind}, not a Sequential or Functional model; {_HELP}")
    return config


def _what(path: str | Path) -> str:
    with open(path, "rb") as file:
        start = file.read(4)
    return "it is HDF5, the old format: load it and save it as .keras" if start == b"\x89HDF" else "save it again"


class _Model:
    """Walk the layers of a model, and of the models inside it."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._path: list[str] = []

    def run(self, model: Config) -> list[Value]:
        """Make the arguments and trace the whole model."""
        inputs = self._arguments(model)
        return self._walk(model, inputs)

    def _arguments(self, model: Config) -> list[Value]:
        layers = {_name(layer): layer for layer in model["config"]["layers"]}
        if model["class_name"] == "Sequential":
            wanted = [next(iter(layers))]
        else:
            wanted = [reference[0] for reference in _references(model["config"]["input_layers"])]
        return [self._argument(layers[name]) for name in wanted]

    def _argument(self, layer: Config) -> Value:
        if layer["class_name"] != "InputLayer":
            raise UnsupportedError("the model has no InputLayer, so its input shape is unknown")
        config = layer["config"]
        if config.get("sparse") or config.get("ragged"):
            raise UnsupportedError(f"the input {_name(layer)!r} is sparse or ragged")
        shape = tuple(config["batch_shape"])
        if not shape or shape[0] is not None:
            raise UnsupportedError(f"the input {_name(layer)!r} has a fixed batch size")
        return self._trace.input(_name(layer), dtypes.parse(config["dtype"]), shape)

    def _walk(self, model: Config, inputs: Sequence[Value]) -> list[Value]:
        name = str(model["config"].get("name", "model"))
        self._path.append(name)
        with self._trace.scope(name):
            walk = self._sequential if model["class_name"] == "Sequential" else self._functional
            outputs = walk(model["config"], inputs)
        self._path.pop()
        return outputs

    def _sequential(self, config: Config, inputs: Sequence[Value]) -> list[Value]:
        values = list(inputs)
        for layer in config["layers"]:
            if layer["class_name"] != "InputLayer":
                values = self._call(layer, values)
        return values

    def _functional(self, config: Config, inputs: Sequence[Value]) -> list[Value]:
        made: dict[tuple[str, int, int], Value] = {}
        for reference, value in zip(_references(config["input_layers"]), inputs, strict=True):
            made[reference] = value
        waiting = [
            (layer, i, node)
            for layer in config["layers"]
            if layer["class_name"] != "InputLayer"
            for i, node in enumerate(layer["inbound_nodes"])
        ]
        while waiting:
            ready = [entry for entry in waiting if all(ref in made for ref in _tensors(entry[2]["args"]))]
            if not ready:
                raise UnsupportedError(f"the inputs of layer {_name(waiting[0][0])!r} are not connected")
            for layer, i, node in ready:
                _refuse_arguments(layer, node)
                if layer.get("module") == _OPERATORS:
                    outputs = [self._operate(layer, [_operand(one, made) for one in node["args"]])]
                else:
                    outputs = self._call(layer, [made[ref] for ref in _tensors(node["args"])])
                made.update({(_name(layer), i, k): value for k, value in enumerate(outputs)})
            waiting = [entry for entry in waiting if entry not in ready]
        return [made[reference] for reference in _references(config["output_layers"])]

    def _call(self, layer: Config, inputs: Sequence[Value]) -> list[Value]:
        kind, name = str(layer["class_name"]), _name(layer)
        if kind in _MODELS and "layers" in layer["config"]:
            return self._walk(layer, inputs)
        try:
            _refuse_custom(layer)
            with self._trace.scope(name):
                return [call(Layer("/".join([*self._path, name]), kind, layer["config"], self._trace), inputs)]
        except UnsupportedError as error:
            raise UnsupportedError(f"layer {name!r} ({kind}): the ops of {error} are not known") from error

    def _operate(self, layer: Config, operands: Sequence[Any]) -> Value:
        try:
            return operate(self._trace, str(layer["class_name"]), operands)
        except UnsupportedError as error:
            raise UnsupportedError(f"operator {_name(layer)!r}: the ops of {error} are not known") from error


def _name(layer: Config) -> str:
    return str(layer.get("name") or layer["config"]["name"])


def _refuse_custom(layer: Config) -> None:
    module = str(layer.get("module"))
    if module != "keras.layers":
        raise UnsupportedError(f"a class of {module}")
    policy = layer["config"].get("dtype", "float32")
    name = policy["config"].get("name", "?") if isinstance(policy, Mapping) else policy
    if name != "float32":
        raise UnsupportedError(f"the dtype policy {name!r}")


def _refuse_arguments(layer: Config, node: Config) -> None:
    extra = sorted(key for key, value in node.get("kwargs", {}).items() if value not in (None, False))
    if extra:
        raise UnsupportedError(f"layer {_name(layer)!r} is called with {extra[0]}, which is not known")


def _references(entries: Any) -> list[tuple[str, int, int]]:
    """Read output references, which are one triple where there is one and a list of triples otherwise."""
    if entries and isinstance(entries[0], str):
        entries = [entries]
    return [(str(name), int(node), int(tensor)) for name, node, tensor in entries]


def _operand(argument: Any, made: Mapping[tuple[str, int, int], Value]) -> Any:
    tensors = _tensors(argument)
    return made[tensors[0]] if len(tensors) == 1 else argument


def _tensors(arguments: Any) -> list[tuple[str, int, int]]:
    """List the tensors among a call's arguments, in order."""
    if isinstance(arguments, Mapping):
        if arguments.get("class_name") == "__keras_tensor__":
            name, node, tensor = arguments["config"]["keras_history"]
            return [(str(name), int(node), int(tensor))]
        return [one for value in arguments.values() for one in _tensors(value)]
    if isinstance(arguments, (list, tuple)):
        return [one for value in arguments for one in _tensors(value)]
    return []
