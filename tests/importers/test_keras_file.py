"""Keras files: the same ops as Keras itself traces, and what is refused."""

from __future__ import annotations

import inspect
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplace.errors import TargetError
from simplace.graph import graph_def
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FunctionDef
from simplace.importers import keras_file
from simplace.importers.keras_layers import ACTIVATIONS, LAYERS
from simplace.importers.keras_options import OPTIONS
from simplace.importers.saved_model import DEFAULT_DEVICE, HOST


def layer(kind: str, name: str, module: str = "keras.layers", **options: Any) -> dict[str, Any]:
    config = {"name": name, **options}
    return {"module": module, "class_name": kind, "name": name, "config": config, "inbound_nodes": []}


def source(shape: tuple[int | None, ...] = (None, 4), dtype: str = "float32") -> dict[str, Any]:
    return layer("InputLayer", "image", batch_shape=list(shape), dtype=dtype)


def saved(path: Path, *layers: dict[str, Any], kind: str = "Sequential", **config: Any) -> Path:
    model = {"module": "keras", "class_name": kind, "config": {"name": "net", "layers": list(layers), **config}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(model))
    return path


def test_a_sequential_model_is_one_function(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.keras", source(), layer("Dense", "hidden", units=3, activation="relu", use_bias=True))
    (program,) = keras_file.read_keras_file(path)
    function = program.graph.library[program.function or ""]
    assert (program.name, program.kind, program.arg_devices) == ("net", "function", (DEFAULT_DEVICE,) * 3)
    resource = DataType.DT_RESOURCE
    assert function.inputs == (
        ArgDef("image", DataType.DT_FLOAT),
        ArgDef("net_hidden_cast_readvariableop_resource", resource),
        ArgDef("net_hidden_biasadd_readvariableop_resource", resource),
    )
    assert [(node.name, node.op, node.inputs) for node in function.nodes] == [
        ("net/hidden/Cast/ReadVariableOp", "ReadVariableOp", ("net_hidden_cast_readvariableop_resource",)),
        ("net/hidden/MatMul", "MatMul", ("image", "net/hidden/Cast/ReadVariableOp:value:0")),
        ("net/hidden/BiasAdd/ReadVariableOp", "ReadVariableOp", ("net_hidden_biasadd_readvariableop_resource",)),
        ("net/hidden/BiasAdd", "BiasAdd", ("net/hidden/MatMul:product:0", "net/hidden/BiasAdd/ReadVariableOp:value:0")),
        ("net/hidden/Relu", "Relu", ("net/hidden/BiasAdd:output:0",)),
        ("Identity", "Identity", ("net/hidden/Relu:activations:0", "^NoOp")),
        ("NoOp", "NoOp", ("^net/hidden/BiasAdd/ReadVariableOp", "^net/hidden/Cast/ReadVariableOp")),
    ]
    assert function.ret == {"identity": "Identity:output:0"}


def test_int32_inputs_are_on_the_host(tmp_path: Path) -> None:
    embedding = layer("Embedding", "e", input_dim=5, output_dim=2)
    (program,) = keras_file.read_keras_file(saved(tmp_path / "m.keras", source(dtype="int32"), embedding))
    assert program.arg_devices == (HOST, DEFAULT_DEVICE)


@pytest.mark.parametrize(
    ("version", "ops"),
    [
        ("2.18", ["Const", "Mul", "Const", "RealDiv", "Erf", "Const", "AddV2", "Mul"]),
        ("2.19.1", ["Const", "Mul", "Neg", "Const", "Mul", "Erfc", "Mul"]),
        (None, ["Const", "Mul", "Neg", "Const", "Mul", "Erfc", "Mul"]),
    ],
)
def test_gelu_has_the_ops_of_the_version(version: str | None, ops: list[str], tmp_path: Path) -> None:
    path = saved(tmp_path / "m.keras", source(), layer("Activation", "gelu", activation="gelu"))
    (program,) = keras_file.read_keras_file(path, version)
    nodes = program.graph.library[program.function or ""].nodes
    assert [node.op for node in nodes if node.name.startswith("net/")] == ops


REFUSED = {
    "layer 'a' (LSTM): simplace does not support its class": layer("LSTM", "a"),
    "layer 'a' (Mine): simplace does not support a class of mine": layer("Mine", "a", "mine"),
    "layer 'a' (Dense): simplace does not support the activation 'mine'": layer(
        "Dense", "a", units=1, activation="mine"
    ),
    "layer 'a' (ReLU): simplace does not support the option 'mine'": layer("ReLU", "a", mine=1),
    "layer 'a' (Conv2D): simplace does not support groups=2": layer("Conv2D", "a", groups=2),
    "layer 'a' (ReLU): simplace does not support the dtype policy 'mixed_float16'": layer(
        "ReLU", "a", dtype={"config": {"name": "mixed_float16"}}
    ),
    "layer 'a' (Flatten): simplace does not support data_format='channels_first'": layer(
        "Flatten", "a", data_format="channels_first"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_known_is_named(tmp_path: Path, message: str) -> None:
    path = saved(tmp_path / "m.keras", source(), REFUSED[message])
    with pytest.raises(TargetError) as caught:
        keras_file.read_keras_file(path)
    assert str(caught.value) == f"{path}: {message}; run the model in a script instead: simplace show script.py"


ODD = {
    "the model's class is in 'mine', not in Keras": {"module": "mine"},
    "'a/b' cannot be the name of a layer or a model": {"config": {"name": "a/b"}},
    "two layers have the name 'image'": {"config": {"layers": [source(), source()]}},
    "the input 'image' is not an InputLayer of Keras": {"config": {"layers": [{**source(), "module": "mine"}]}},
    "'1' cannot be the name of a layer or a model": {
        "config": {"layers": [layer("InputLayer", 1, batch_shape=[None])]}
    },
}


@pytest.mark.parametrize("message", ODD)
def test_what_keras_would_not_load_is_refused(tmp_path: Path, message: str) -> None:
    changed, config = ODD[message], {"name": "net", "layers": [source()]}
    model = {
        "module": "keras",
        "class_name": "Sequential",
        **changed,
        "config": {**config, **changed.get("config", {})},
    }
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(model))
    with pytest.raises(TargetError) as caught:
        keras_file.read_keras_file(path)
    assert str(caught.value) == f"{path}: {message}; run the model in a script instead: simplace show script.py"


def test_an_argument_of_another_class_is_refused(tmp_path: Path) -> None:
    node = {"args": [{"class_name": "__keras_tensor", "config": {"keras_history": ["image", 0, 0]}}], "kwargs": {}}
    places = {"input_layers": ["image", 0, 0], "output_layers": ["a", 0, 0]}
    called = {**layer("ReLU", "a"), "inbound_nodes": [node]}
    path = saved(tmp_path / "m.keras", source(), called, kind="Functional", **places)
    with pytest.raises(TargetError, match="an argument is a __keras_tensor, not a tensor; run the model in a script"):
        keras_file.read_keras_file(path)


TENSOR = {"class_name": "__keras_tensor__"}
OF_IMAGE = {"shape": [None, 4], "dtype": "float32", "keras_history": ["image", 0, 0]}
UNCONNECTED = {
    "the configuration does not say what layer 'image' is called with": ({}, {"inbound_nodes": None}),
    "a layer of a Functional model has no name": ({}, {"name": 0}),
    "layer 'a' is called with '__keras_tensor__', not a tensor": ({**TENSOR, "confg": OF_IMAGE}, {}),
    "'floAt32' is not a dtype of Keras": ({**TENSOR, "config": {**OF_IMAGE, "dtype": "floAt32"}}, {}),
    "an argument has no shape": ({**TENSOR, "config": {**OF_IMAGE, "shape": 4}}, {}),
    "the inputs of layer 'a' are not connected": (
        {**TENSOR, "config": {**OF_IMAGE, "keras_history": ["other", 0, 0]}}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", UNCONNECTED)
def test_what_a_functional_model_does_not_say_is_refused(tmp_path: Path, message: str) -> None:
    argument, changed = UNCONNECTED[message]
    first = {key: value for key, value in {**source(), **changed}.items() if value is not None}
    called = {**layer("ReLU", "a"), "inbound_nodes": [{"args": [argument], "kwargs": {}}]}
    places = {"input_layers": ["image", 0, 0], "output_layers": ["a", 0, 0]}
    path = saved(tmp_path / "m.keras", first, called, kind="Functional", **places)
    with pytest.raises(TargetError, match=re.escape(message)):
        keras_file.read_keras_file(path)


def test_shapes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    other = {**source((None, 3)), "name": "other", "config": {**source((None, 3))["config"], "name": "other"}}
    args = [[{**TENSOR, "config": {**OF_IMAGE, "keras_history": [name, 0, 0]}} for name in ("image", "other")]]
    called = {**layer("Add", "a"), "inbound_nodes": [{"args": args, "kwargs": {}}]}
    places = {"input_layers": [["image", 0, 0], ["other", 0, 0]], "output_layers": ["a", 0, 0]}
    path = saved(tmp_path / "m.keras", source(), other, called, kind="Functional", **places)
    with pytest.raises(TargetError, match=re.escape("inputs of the shapes [None, 4] and [None, 3]")):
        keras_file.read_keras_file(path)


def test_a_model_without_outputs_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.keras", source(), kind="Functional", input_layers=["image", 0, 0], output_layers=[])
    with pytest.raises(TargetError, match="the model has no outputs"):
        keras_file.read_keras_file(path)


def test_files_that_are_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    path.write_text("x")
    with pytest.raises(TargetError, match="a zip archive; save it again"):
        keras_file.read_keras_file(path)
    path.write_bytes(b"\x89HDF....")
    with pytest.raises(TargetError, match="it is HDF5, the old format"):
        keras_file.read_keras_file(path)
    saved(path, source(), kind="Mine")
    with pytest.raises(TargetError, match="the model is a Mine, not a Sequential or Functional model"):
        keras_file.read_keras_file(path)
    saved(path, {"class_name": "InputLayer"})
    with pytest.raises(TargetError, match="does not describe a model as Keras 3 does"):
        keras_file.read_keras_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(TargetError, match="is missing from the zip"):
        keras_file.read_keras_file(path)


def test_the_tables_are_sorted() -> None:
    assert list(ACTIVATIONS) == sorted(ACTIVATIONS)
    assert list(LAYERS) == sorted(LAYERS)
    assert list(OPTIONS) == sorted(OPTIONS)
    assert OPTIONS.keys() == {*LAYERS, "InputLayer"}


def options_of(keras: Any, kind: str) -> set[str]:
    """Read the options of a layer from its class, and from those above it as far as each hands on what it is given."""
    found: set[str] = set()
    for made in getattr(keras.layers, kind).__mro__:
        if "__init__" in vars(made):
            parameters = inspect.signature(made.__init__).parameters.values()
            found |= {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
            found |= set(re.findall(r'kwargs\.pop\("(\w+)"', inspect.getsource(made.__init__)))
            if made is keras.layers.Layer or not any(one.kind is one.VAR_KEYWORD for one in parameters):
                break
    return found - {"self"}


@pytest.mark.tf
def test_the_options_of_a_layer_are_those_of_its_signature() -> None:
    keras = pytest.importorskip("keras")
    if keras.__version__.split(".")[:2] != ["3", "15"]:
        pytest.skip("the options of layers are those of Keras 3.15")
    of_every_layer = options_of(keras, "Layer")
    assert {kind: options_of(keras, kind) | of_every_layer for kind in OPTIONS} == OPTIONS


IMAGE = (8, 8, 3)


def models(keras: Any) -> dict[str, Callable[[], Any]]:
    made = keras.layers

    def chain(shape: tuple[int, ...], *layers: Callable[[], Any], dtype: str = "float32") -> Callable[[], Any]:
        return lambda: keras.Sequential([made.Input(shape, dtype=dtype), *(one() for one in layers)])

    def merged(kind: str, count: int, **options: Any) -> Callable[[], Any]:
        def build() -> Any:
            inputs = [keras.Input((3,)) for _ in range(count)]
            return keras.Model(inputs, getattr(made, kind)(**options)(inputs))

        return build

    def shared() -> Any:
        a, b = keras.Input((3,)), keras.Input((3,))
        dense = made.Dense(4)
        inner = keras.Sequential([made.Input((4,)), made.Dense(2, activation="tanh")])
        total = made.Add()([dense(a), dense(b)])
        return keras.Model([a, b], [inner(total), made.Dropout(0.5)(total)])

    def operators() -> Any:
        a, b = keras.Input((3,)), keras.Input((3,))
        return keras.Model([a, b], [(a + b) * a - b, a + 1.0, 2.0 * b])

    cases = {
        "dense": chain((4,), lambda: made.Dense(3, activation="relu"), lambda: made.Dense(2, use_bias=False)),
        "dense 3d": chain((5, 4), lambda: made.Dense(3)),
        "conv1d": chain(
            (9, 3), lambda: made.Conv1D(4, 3, padding="causal"), lambda: made.Conv1D(4, 3, padding="same", strides=2)
        ),
        "conv2d": chain(
            IMAGE,
            lambda: made.Conv2D(4, 3, activation="relu", padding="same", strides=2),
            lambda: made.BatchNormalization(),
            lambda: made.MaxPooling2D(2),
            lambda: made.Flatten(),
            lambda: made.Dense(2, activation="softmax"),
        ),
        "conv2d dilated": chain(IMAGE, lambda: made.Conv2D(4, 3, dilation_rate=2)),
        "conv2d dilated same": chain(IMAGE, lambda: made.Conv2D(4, 3, dilation_rate=2, padding="same")),
        "conv2d transpose": chain(
            IMAGE,
            lambda: made.Conv2DTranspose(4, 3, strides=2, padding="same"),
            lambda: made.Conv2DTranspose(2, 3, strides=2),
        ),
        "depthwise": chain(IMAGE, lambda: made.DepthwiseConv2D(3), lambda: made.SeparableConv2D(5, 3, padding="same")),
        "pools": chain(IMAGE, lambda: made.AveragePooling2D(2), lambda: made.GlobalAveragePooling2D()),
        "pools 1d": chain(
            (8, 3), lambda: made.MaxPooling1D(2), lambda: made.AveragePooling1D(2), lambda: made.GlobalMaxPooling1D()
        ),
        "global pools": chain((8, 3), lambda: made.GlobalAveragePooling1D()),
        "global max": chain(IMAGE, lambda: made.GlobalMaxPooling2D(keepdims=True)),
        "shapes": chain(
            (6,),
            lambda: made.Reshape((2, 3)),
            lambda: made.Permute((2, 1)),
            lambda: made.Reshape((-1,)),
            lambda: made.Flatten(),
        ),
        "embedding": chain((5,), lambda: made.Embedding(10, 4), dtype="int32"),
        "embedding of floats": chain((5,), lambda: made.Embedding(10, 4)),
        "embedding of int64": chain((5,), lambda: made.Embedding(10, 4), dtype="int64"),
        "padding": chain(IMAGE, lambda: made.ZeroPadding2D(1), lambda: made.Cropping2D(2)),
        "padding 1d": chain((5, 3), lambda: made.ZeroPadding1D(1)),
        "rescaling": chain(IMAGE, lambda: made.Rescaling(1 / 255)),
        "rescaling bytes": chain(IMAGE, lambda: made.Rescaling(1 / 255, offset=-1), dtype="uint8"),
        "rectifiers": chain(
            (3,),
            lambda: made.ReLU(),
            lambda: made.ReLU(max_value=6.0),
            lambda: made.LeakyReLU(),
            lambda: made.ELU(),
            lambda: made.PReLU(),
            lambda: made.Softmax(),
            lambda: made.GaussianNoise(0.1),
            lambda: made.GaussianDropout(0.1),
        ),
        "average": merged("Average", 3),
        "concatenate": merged("Concatenate", 3),
        "subtract": merged("Subtract", 2),
        "multiply": merged("Multiply", 3),
        "maximum": merged("Maximum", 2),
        "minimum": merged("Minimum", 2),
        "shared and nested": shared,
        "operators": operators,
        "batch norm of a positive axis": chain(IMAGE, lambda: made.BatchNormalization(axis=3)),
        "batch norm without scale": chain(IMAGE, lambda: made.BatchNormalization(axis=3, scale=False)),
    }
    for name in sorted(ACTIVATIONS):
        cases[f"activation {name}"] = chain((3,), lambda name=name: made.Activation(name))
    for scale in (True, False):
        for center in (True, False):
            options = {"scale": scale, "center": center}
            cases[f"batch norm {options}"] = chain((3,), lambda o=options: made.BatchNormalization(**o))
            cases[f"layer norm {options}"] = chain((4, 3), lambda o=options: made.LayerNormalization(**o))
    return cases


def wiring(function: FunctionDef) -> Counter[tuple[object, ...]]:
    """Count the nodes by op, type and by the ops (or arguments' types) that their inputs come from."""
    made: dict[str, object] = {node.name: node.op for node in function.nodes}
    made |= {arg.name: arg.dtype for arg in function.inputs}
    return Counter(
        (
            node.op,
            node.attrs.get("T", node.attrs.get("dtype")),
            tuple(sorted(str(made[one.lstrip("^").split(":")[0]]) for one in node.inputs if one.startswith("^"))),
            *(made[one.split(":")[0]] for one in node.inputs if not one.startswith("^")),
        )
        for node in function.nodes
    )


@pytest.mark.tf
def test_every_layer_traces_to_the_ops_of_keras(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow" or tf.config.list_logical_devices("GPU"):
        pytest.skip("Keras traces other ops without its TensorFlow backend or with a GPU")
    differences = {}
    for case, build in models(keras).items():
        model = build()
        path = tmp_path / "model.keras"
        model.save(path)
        specs = [tf.TensorSpec(one.shape, one.dtype) for one in model.inputs]
        concrete = tf.function(model).get_concrete_function(specs[0] if len(specs) == 1 else specs)
        traced = concrete.function_def
        (program,) = keras_file.read_keras_file(path, tf.version.VERSION)
        ours = program.graph.library[program.function or ""]
        wanted, found = wiring(graph_def.function_from_message(traced)), wiring(ours)
        types = [int(arg.dtype) for arg in ours.inputs], [int(arg.dtype) for arg in ours.outputs]
        wanted_types = [a.type for a in traced.signature.input_arg], [a.type for a in traced.signature.output_arg]
        if wanted != found or types != wanted_types:
            differences[case] = (wanted - found, found - wanted, types, wanted_types)
    assert differences == {}
