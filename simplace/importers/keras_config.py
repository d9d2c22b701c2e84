"""Check the configuration of a model as Keras does before it makes the model: names, inputs, what calls are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from simplace.importers.keras_layers import UnsupportedError
from simplace.importers.keras_options import DTYPES, OPTIONS

Config = Mapping[str, Any]
Reference = tuple[str, int, int]  # the name of a layer, which of its calls, which of the call's outputs

OPERATORS_MODULE = "keras.src.ops.numpy"
_MODELS = ("Sequential", "Functional", "Model")
_MODEL_MODULES = (
    "keras",
    "keras.models",
    *(f"keras.src.models.{name}" for name in ("functional", "model", "sequential")),
)
_LAYERS_MODULE = "keras.layers"
_TENSOR = "__keras_tensor__"


def check_model(config: Any) -> Config:
    """Return the configuration of a model; raise `UnsupportedError` for one that Keras would not load, or not known."""
    kind = config.get("class_name") if isinstance(config, Mapping) else type(config).__name__
    if not isinstance(config, Mapping) or not is_model(config):
        raise UnsupportedError(f"the model is a {shorten_text(str(kind))}, not a Sequential or Functional model")
    if config["module"] not in _MODEL_MODULES:
        raise UnsupportedError(f"the model's class is in {shorten_text(str(config['module']))!r}, not in Keras")
    own = config["config"]
    _check_name(own, is_needed=kind == "Sequential")
    layers = own["layers"]
    if kind != "Sequential":
        _check_connected(layers)
    for layer in layers:
        _check_layer(layer)
    for names in (map(layer_name, layers), (layer["config"].get("name") for layer in layers)):
        twice = [name for name, count in Counter(names).items() if count > 1 and name is not None]
        if twice:
            raise UnsupportedError(f"two layers have the name {twice[0]!r}")
    return config


def is_model(layer: Config) -> bool:
    """Return whether a layer is a model of layers itself."""
    return layer["class_name"] in _MODELS and "layers" in layer["config"]


def is_input(layer: Config) -> bool:
    """Return whether a layer stands for an input."""
    return bool(layer["class_name"] == "InputLayer")


def layer_name(layer: Config) -> str:
    """Return the name that other layers refer to a layer by."""
    return str(layer.get("name") or layer["config"].get("name") or layer["class_name"])


def list_tensors(arguments: Any) -> list[Reference]:
    """List the tensors among a call's arguments, in order; raise `UnsupportedError` for an object of another class."""
    return [_read_tensor(leaf) for leaf in _list_leaves(arguments) if isinstance(leaf, Mapping)]


def shorten_text(text: str, most: int = 200) -> str:
    """Return text for a message, at most so many characters of it."""
    return text if len(text) <= most else text[:most] + "..."


def _check_connected(layers: list[Config]) -> None:
    """Check what a Functional model has of each layer beside its configuration."""
    for layer in layers:
        if not isinstance(layer.get("name"), str):
            raise UnsupportedError("a layer of a Functional model has no name")
        if "inbound_nodes" not in layer:
            raise UnsupportedError(f"the configuration does not say what layer {layer['name']!r} is called with")
        if layer.get("module") != OPERATORS_MODULE:
            for node in layer["inbound_nodes"]:
                _check_positional(layer, node["args"])


def _check_positional(layer: Config, args: Any) -> None:
    """Raise `UnsupportedError` for a positional argument of a layer that is no tensor (`Layer.__call__`)."""
    for leaf in _list_leaves(args):
        if leaf is not None and not isinstance(leaf, Mapping):
            raise UnsupportedError(f"layer {layer['name']!r} is called with {shorten_text(repr(leaf))}, not a tensor")


def _list_leaves(value: Any) -> Iterator[Any]:
    """Yield what is in lists and mappings, in order; a mapping among them is a tensor or another object."""
    if isinstance(value, Mapping) and not ("class_name" in value and "config" in value):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _list_leaves(one)
    else:
        yield value


def _check_layer(layer: Config) -> None:
    if is_model(layer):
        check_model(layer)
        return
    _check_name(layer["config"])
    if is_input(layer):
        _check_input(layer)


def _check_name(config: Config, *, is_needed: bool = False) -> None:
    """Raise `UnsupportedError` for what Keras takes for no name of a layer or model; None is none given."""
    name = config.get("name")
    if (is_needed and "name" not in config) or not isinstance(name, str | None) or "/" in (name or ""):
        raise UnsupportedError(f"{shorten_text(str(name))!r} cannot be the name of a layer or a model")


def _check_input(layer: Config) -> None:
    config, name = layer["config"], layer_name(layer)
    if layer["module"] != _LAYERS_MODULE or layer.get("inbound_nodes", []) != []:
        raise UnsupportedError(f"the input {name!r} is not an InputLayer of Keras")
    refuse_options("InputLayer", config)
    if not isinstance(config.get("batch_shape"), list):
        raise UnsupportedError(f"the input {name!r} has no batch_shape")
    _check_dtype(config.get("dtype"))


def _check_dtype(dtype: Any) -> None:
    if dtype not in DTYPES:
        raise UnsupportedError(f"{shorten_text(str(dtype))!r} is not a dtype of Keras")


def refuse_options(kind: str, config: Config) -> None:
    """Raise `UnsupportedError` for an option that Keras does not take for a class of layers."""
    unknown = sorted(config.keys() - OPTIONS[kind]) if kind in OPTIONS else []
    if unknown:
        raise UnsupportedError(f"the option {shorten_text(unknown[0])!r}")


def refuse_custom(layer: Config) -> None:
    """Raise `UnsupportedError` for a layer that is not Keras's own, or computes in other types."""
    module = str(layer.get("module"))
    if module != _LAYERS_MODULE:
        raise UnsupportedError(f"a class of {module}")
    policy = layer["config"].get("dtype", "float32")
    name = policy["config"].get("name", "?") if isinstance(policy, Mapping) else policy
    if name != "float32":
        raise UnsupportedError(f"the dtype policy {name!r}")


def refuse_arguments(layer: Config, node: Config) -> None:
    """Raise `UnsupportedError` for a call with arguments by name that say something."""
    extra = sorted(key for key, value in node["kwargs"].items() if value not in (None, False))
    if extra:
        raise UnsupportedError(
            f"layer {layer_name(layer)!r} is called with the argument {extra[0]}, which is not supported"
        )


def _read_tensor(argument: Config) -> Reference:
    kind, config = argument["class_name"], argument["config"]
    if kind != _TENSOR:
        raise UnsupportedError(f"an argument is a {shorten_text(str(kind))}, not a tensor")
    _check_dtype(config["dtype"])
    if not isinstance(config["shape"], list):
        raise UnsupportedError("an argument has no shape")
    name, node, tensor = config["keras_history"]
    return str(name), int(node), int(tensor)
