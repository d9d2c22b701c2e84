"""Reading GraphDefs: every kind of attribute, both encodings, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from simplace.errors import TargetError
from simplace.graph import graph_def, protos
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FuncRef, ShapeAttr, TensorInfo

ALL_ATTRS = """
node {
  name: "n" op: "Op" device: "/gpu:0" input: "a:1" input: "^b"
  attr { key: "type" value { type: DT_HALF } }
  attr { key: "ref" value { type: DT_FLOAT_REF } }
  attr { key: "s" value { s: "x\\001" } }
  attr { key: "i" value { i: -3 } }
  attr { key: "f" value { f: 0.5 } }
  attr { key: "b" value { b: false } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } }
  attr { key: "unknown" value { shape { unknown_rank: true } } }
  attr { key: "types" value { list { type: DT_INT32 type: DT_INT64 } } }
  attr { key: "shapes" value { list { shape { } shape { unknown_rank: true } } } }
  attr { key: "empty" value { list { } } }
  attr { key: "func" value { func { name: "g" attr { key: "T" value { type: DT_BOOL } } } } }
  attr { key: "placeholder" value { placeholder: "T" } }
  attr { key: "scalar" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 } } }
  attr { key: "zero" value { tensor { dtype: DT_INT64 tensor_shape { } } } }
  attr { key: "true" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } }
  attr { key: "packed" value { tensor { dtype: DT_INT32 tensor_shape { } tensor_content: "\\377\\377\\377\\377" } } }
  attr { key: "vector" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 7 } } }
  attr { key: "float" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } }
}
versions { producer: 2474 }
"""

FUNCTION = """
library { function {
  signature {
    name: "f" is_stateful: true
    input_arg { name: "x" type: DT_FLOAT }
    input_arg { name: "xs" type_attr: "T" number_attr: "N" }
    output_arg { name: "y" type: DT_RESOURCE }
    control_output: "second" control_output: "first"
  }
  node_def { name: "z" op: "Identity" input: "x" }
  ret { key: "y" value: "z:output:0" }
  control_ret { key: "second" value: "b" }
  control_ret { key: "first" value: "a" }
  attr { key: "T" value { type: DT_HALF } }
  attr { key: "N" value { i: 2 } }
  arg_attr { key: 0 value { attr { key: "_user_specified_name" value { s: "x" } } } }
} }
"""


def binary(text: str, message: str = "GraphDef") -> bytes:
    from google.protobuf import text_format

    parsed = text_format.Parse(text, protos.message_class(message)(), descriptor_pool=protos.get_descriptor_pool())
    return bytes(parsed.SerializeToString())


def test_every_kind_of_attribute() -> None:
    graph = graph_def.parse_text(ALL_ATTRS)
    (node,) = graph.nodes
    assert (node.name, node.op, node.device, node.inputs, graph.producer) == ("n", "Op", "/gpu:0", ("a:1", "^b"), 2474)
    assert node.attrs == {
        "type": DataType.DT_HALF,
        "ref": 101,
        "s": b"x\x01",
        "i": -3,
        "f": 0.5,
        "b": False,
        "shape": ShapeAttr((-1, 2)),
        "unknown": ShapeAttr(None),
        "types": (DataType.DT_INT32, DataType.DT_INT64),
        "shapes": (ShapeAttr(()), ShapeAttr(None)),
        "empty": (),
        "func": FuncRef("g", {"T": DataType.DT_BOOL}),
        "placeholder": "T",
        "scalar": TensorInfo(DataType.DT_INT32, (), 7),
        "zero": TensorInfo(DataType.DT_INT64, (), 0),
        "true": TensorInfo(DataType.DT_BOOL, (), 1),
        "packed": TensorInfo(DataType.DT_INT32, (), -1),
        "vector": TensorInfo(DataType.DT_INT32, (2,)),
        "float": TensorInfo(DataType.DT_FLOAT, ()),
    }


def test_a_function_keeps_its_orders() -> None:
    function = graph_def.parse_text(FUNCTION).library["f"]
    half = DataType.DT_HALF
    assert function.inputs == (ArgDef("x", DataType.DT_FLOAT), ArgDef("xs_0", half), ArgDef("xs_1", half))
    assert function.outputs == (ArgDef("y", DataType.DT_RESOURCE),)
    assert function.ret == {"y": "z:output:0"}
    assert list(function.control_ret.items()) == [("first", "a"), ("second", "b")]
    assert function.control_outputs == ("second", "first")
    assert function.arg_attrs == {0: {"_user_specified_name": b"x"}}
    assert function.is_stateful


def test_an_unknown_type_stays_a_number() -> None:
    message = protos.message_class("GraphDef")()
    message.node.add(name="n", op="Op").attr["T"].type = 177
    assert graph_def.parse_graph_def(message.SerializeToString()).nodes[0].attrs == {"T": 177}


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt", "model.meta", "no_suffix"])
@pytest.mark.parametrize("meta", [False, True])
@pytest.mark.parametrize("as_text", [False, True])
def test_the_content_decides_the_format(tmp_path: Path, name: str, meta: bool, as_text: bool) -> None:
    text = (
        f"meta_info_def {{ meta_graph_version: 'v' tags: 'serve' }} graph_def {{ {ALL_ATTRS} }}" if meta else ALL_ATTRS
    )
    data = text.encode() if as_text else binary(text, "MetaGraphDef" if meta else "GraphDef")
    (tmp_path / name).write_bytes(data)
    assert graph_def.read_graph_file(tmp_path / name) == graph_def.parse_text(ALL_ATTRS)


ZIP = b"PK\x03\x04aaaa"
REFUSED = {
    "empty": (b"", "empty, so not a GraphDef; write it again"),
    "blank": (b" \n", "empty, so not a GraphDef; write it again"),
    "html": (b"\n<!DOCTYPE html>", "not a GraphDef but an HTML or XML page; download the file itself"),
    "json": (b'{"class_name": 1}', "not a GraphDef but JSON, it seems; write a GraphDef with tf.io.write_graph"),
    "zip": (
        ZIP,
        "not a GraphDef but a zip archive; unpack it, or give it a name that ends in .keras if it is a Keras model",
    ),
    "tflite": (
        b"\x1c\0\0\0TFL3",
        "not a GraphDef but a TensorFlow Lite model; give the model it was converted from",
    ),
    "truncated": (
        binary(ALL_ATTRS)[:-20],
        "not a binary GraphDef: truncated, damaged, or another kind of file; write it again",
    ),
    "typo": (
        b'node {\n name: "a"\n opp: "b"\n}',
        'not a GraphDef in text form, line 3: Message type "tensorflow.NodeDef" has no field named "opp"',
    ),
    "prose": (
        b"hello world",
        'not a GraphDef in text form, line 1: Message type "tensorflow.GraphDef" has no field named "hello"',
    ),
    "no nodes": (
        b"versions { producer: 1 }",
        "not a GraphDef: no node with a name and an op in it; write one with tf.io.write_graph",
    ),
    "saved model": (
        binary(f"saved_model_schema_version: 1 meta_graphs {{ graph_def {{ {ALL_ATTRS} }} }}", "SavedModel"),
        "a SavedModel message; give the directory that holds saved_model.pb instead",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_no_graph_is_named(tmp_path: Path, case: str) -> None:
    data, message = REFUSED[case]
    file = tmp_path / "graph.pb"
    file.write_bytes(data)
    with pytest.raises(TargetError) as caught:
        graph_def.read_graph_file(file)
    assert str(caught.value) == f"{file}: {message}"


def test_a_real_zip_a_directory_and_nothing(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("a", "b")
    for path, words in ((tmp_path / "model.zip", "zip archive"), (tmp_path, "directory"), (tmp_path / "x", "No such")):
        with pytest.raises(TargetError, match=words):
            graph_def.read_graph_file(path)


@pytest.mark.tf
def test_tensorflows_own_messages_read_the_same(tmp_path: Path) -> None:
    import tensorflow as tf

    @tf.function
    def countdown(x: tf.Tensor) -> tf.Tensor:
        while tf.reduce_sum(x) > 0:
            x = tf.where(x > 1, x - 1, x - 2)
            if x[0] < 0:
                tf.print(x)
        return x

    message = countdown.get_concrete_function(tf.TensorSpec([None])).graph.as_graph_def()
    (tmp_path / "g.pb").write_bytes(message.SerializeToString())
    (tmp_path / "g.pbtxt").write_text(str(message))
    graph = graph_def.from_message(message)
    assert graph == graph_def.read_graph_file(tmp_path / "g.pb") == graph_def.read_graph_file(tmp_path / "g.pbtxt")
    assert len(graph.library) == len(message.library.function) > 3


@pytest.mark.parametrize("size", [ord("{"), ord("["), ord("<")])
def test_a_first_node_whose_length_looks_like_json_or_markup(size):
    message = protos.message_class("GraphDef")(node=[{"name": "a" * (size - 8), "op": "NoOp"}])
    data = message.SerializeToString()
    assert data[:2] == b"\n" + bytes([size])
    assert graph_def.parse_graph_def(data).nodes[0].op == "NoOp"


def test_nodes_with_equal_attributes_share_them() -> None:
    text = "".join(f'node {{ name: "{n}" op: "Op" attr {{ key: "T" value {{ type: DT_HALF }} }} }} ' for n in "ab")
    a, b = graph_def.parse_graph_def(binary(text)).nodes
    assert a.attrs is b.attrs


def test_a_damaged_attribute_is_found() -> None:
    node = protos.sealed_class("NodeDef")(name="a", op="Op", attr=[b"\x0a\xff"])
    data = protos.sealed_class("GraphDef")(node=[node]).SerializeToString()
    with pytest.raises(TargetError, match="not a binary GraphDef: truncated, damaged, or another kind of file"):
        graph_def.parse_graph_def(data)
