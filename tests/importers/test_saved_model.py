"""SavedModel directories: signatures with the devices of what they capture, TF1 graphs, broken directories."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from simplace.errors import TargetError
from simplace.graph import protos
from simplace.importers import saved_model
from simplace.importers.saved_model import DEFAULT_DEVICE, HOST

SIGNATURE = """
meta_graphs {
  meta_info_def { tags: "serve" }
  asset_file_def { filename: "words" }
  graph_def { node { name: "Const" op: "Const" } library { function { signature { name: "create" } } function {
    signature {
      name: "f"
      input_arg { name: "x" type: DT_FLOAT }
      input_arg { name: "n" type: DT_INT32 }
      input_arg { name: "flag" type: DT_BOOL }
      input_arg { name: "weight" type: DT_RESOURCE }
      input_arg { name: "count" type: DT_RESOURCE }
      input_arg { name: "table" type: DT_RESOURCE }
      input_arg { name: "queue" type: DT_RESOURCE }
      input_arg { name: "path" type: DT_STRING }
      input_arg { name: "scale" type: DT_HALF }
    }
    node_def { name: "NoOp" op: "NoOp" }
  } } }
  object_graph_def {
    nodes { children { node_id: 1 local_name: "signatures" } user_object { } }
    nodes { children { node_id: 2 local_name: "serving_default" } user_object { } }
    nodes { bare_concrete_function { concrete_function_name: "f" argument_keywords: "x" } }
    nodes { variable { dtype: DT_FLOAT device: "/job:localhost/replica:0/task:0/device:CPU:1" } }
    nodes { variable { dtype: DT_INT32 } }
    nodes { resource { } children { node_id: 9 local_name: "_create_resource" } }
    nodes { resource { device: "/gpu:1" } children { node_id: 9 local_name: "_create_resource" } }
    nodes { asset { } }
    nodes { constant { operation: "Const" } }
    nodes { bare_concrete_function { concrete_function_name: "create" } }
    concrete_functions { key: "f" value { bound_inputs: [3, 4, 5, 6, 7, 8] } }
  }
}
"""
GRAPH = 'meta_graphs { meta_info_def { tags: "serve" } graph_def { node { name: "a" op: "NoOp" } } }'


def model(directory: Path, text: str, *, as_text: bool = False) -> Path:
    message = text_format.Parse(
        text, protos.message_class("SavedModel")(), descriptor_pool=protos.get_descriptor_pool()
    )
    directory.mkdir(exist_ok=True)
    if as_text:
        (directory / "saved_model.pbtxt").write_text(str(message))
    else:
        (directory / "saved_model.pb").write_bytes(message.SerializeToString())
    return directory


@pytest.mark.parametrize("as_text", [False, True])
def test_a_signature_knows_where_its_inputs_live(tmp_path: Path, as_text: bool) -> None:
    (program,) = saved_model.read_saved_model(model(tmp_path / "m", SIGNATURE, as_text=as_text))
    assert (program.name, program.kind, program.function, program.scope) == ("serving_default", "function", "f", "")
    assert dict(zip((arg.name for arg in program.graph.library["f"].inputs), program.arg_devices, strict=True)) == {
        "x": DEFAULT_DEVICE,
        "n": HOST,
        "flag": DEFAULT_DEVICE,
        "weight": DEFAULT_DEVICE,
        "count": HOST,
        "table": HOST,
        "queue": HOST.replace("CPU:0", "GPU:1"),
        "path": HOST,
        "scale": DEFAULT_DEVICE,
    }


def test_a_gradient_that_is_registered_for_no_op_is_passed_over(tmp_path: Path) -> None:
    text = SIGNATURE.replace("library {", 'library { registered_gradients { gradient_func: "gone" }', 1)
    assert len(saved_model.read_saved_model(model(tmp_path, text))) == 1


def test_without_signatures_every_function_is_a_program(tmp_path: Path) -> None:
    text = SIGNATURE.replace("bare_concrete_function", "function").replace('argument_keywords: "x"', "")
    text = text.replace("concrete_function_name", "concrete_functions").replace("serving_default", "call")
    programs = saved_model.read_saved_model(model(tmp_path, text))
    assert [(program.name, program.function) for program in programs] == [("signatures.call", "f")]


def test_minus_one_is_the_last_object_as_in_a_list_of_python(tmp_path: Path) -> None:
    text = SIGNATURE.replace("node_id: 1 ", "node_id: -9 ", 1)
    assert [program.name for program in saved_model.read_saved_model(model(tmp_path, text))] == ["serving_default"]


def test_a_tf1_model_is_a_graph(tmp_path: Path) -> None:
    (program,) = saved_model.read_saved_model(model(tmp_path / "old", GRAPH))
    assert (program.name, program.kind, program.function, program.soft_placement) == ("old", "graph", None, False)
    assert [node.name for node in program.graph.nodes] == ["a"]


def test_tags_choose_the_graph(tmp_path: Path) -> None:
    train = GRAPH.replace("serve", "train").replace('"a"', '"b"')
    directory = model(tmp_path, GRAPH + train)
    assert [node.name for node in saved_model.read_saved_model(directory, {"train"})[0].graph.nodes] == ["b"]
    with pytest.raises(TargetError, match=r"has 2 MetaGraph\(s\); choose the tags of one of them: serve \| train"):
        saved_model.read_saved_model(directory)
    with pytest.raises(TargetError, match="none with the tags gpu; choose"):
        saved_model.read_saved_model(directory, ["gpu"])


def test_tags_must_be_given_for_two_graphs_even_where_they_have_the_same(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"has 2 MetaGraph\(s\); choose the tags of one of them: serve \| serve"):
        saved_model.read_saved_model(model(tmp_path, GRAPH + GRAPH))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('concrete_functions { key: "f"', 'concrete_functions { key: "g" value { } } concrete_functions { key: "f"',
         "the function g is missing; save the model again"),
        ("7, 8]", "7, 99]",
         "f captures an object that does not exist; save it again"),
        ("library {", 'library { function { signature { name: "h" control_output: "p" } }',
         "the function h waits for '', which is not in it; save it again"),
        ("library {", 'library { function { signature { name: "h" } node_def { name: "n" op: "NoOp" device: "x:0" } }',
         "TensorFlow would not load this SavedModel: Unknown attribute 'x' is encountered while parsing the device "
         "spec: 'x:0'."),
        ("nodes { variable { dtype: DT_FLOAT", "nodes { variable { dtype: 99",
         "a variable has the unknown type 99; save it again"),
        ("nodes { variable { dtype: DT_FLOAT", "nodes { variable { dtype: DT_FLOAT aggregation: -1",
         "TensorFlow would not load this SavedModel: Invalid variable aggregation mode: -1"),
        ('operation: "Const" } }', 'operation: "Const" } } nodes { }',
         "TensorFlow would not load this SavedModel: an object is of no type that it knows"),
        ("nodes { variable {", "nodes { slot_variables { original_variable_node_id: 3 slot_variable_node_id: 4 } "
         "variable {",
         "TensorFlow would not load this SavedModel: an object that is no optimizer has slots"),
        ('operation: "Const" } }', 'operation: "Const" } } nodes { user_object { identifier: "optimizer" } '
         "slot_variables { original_variable_node_id: 3 slot_variable_node_id: 40 } }",
         "a slot of an optimizer, or its variable, does not exist; save it again"),
        ('operation: "Const" } }', 'operation: "Const" } } nodes { registered_name: "mine" }',
         "TensorFlow would not load this SavedModel: an object is of no type that it knows"),
        ("nodes { variable {", "nodes { dependencies { node_id: 2147483647 } variable {",
         "an object depends on one that does not exist; save it again"),
        ("nodes { resource {", 'nodes { children { node_id: -1 local_name: "_create_resource" } resource {',
         "an object depends on one that does not exist; save it again"),
        ("nodes { variable {", "nodes { children { node_id: -11 } variable {",
         "its object graph refers to objects that do not exist; save it again"),
        ("nodes { resource {", 'nodes { function { concrete_functions: "größe" } } nodes { resource {',
         "the function größe is missing; save the model again"),
        ("7, 8]", "7, 1]",
         "TensorFlow would not load this SavedModel: f captures an object that is no tensor"),
        ('9 local_name: "_create_resource"', '9 local_name: "made"',
         "TensorFlow would not load this SavedModel: f captures a resource that nothing creates"),
        ('operation: "Const"', 'operation: "gone"',
         "the constant 'gone' is not in its graph; save it again"),
        ("nodes { asset { }", "nodes { asset { asset_file_def_index: 1 }",
         "it has no asset number 1; save it again"),
        ("nodes { variable { dtype: DT_FLOAT", "nodes { variable { dtype: DT_FLOAT shape { dim { size: -2 } }",
         "TensorFlow would not load this SavedModel: Shape [-2] has dimensions with values below -1 (where -1 means "
         "unknown)"),
        ("library {", 'library { function { signature { name: "h" } node_def { name: "n" op: "k" } } '
         'function { signature { name: "k" } node_def { name: "n" op: "h" } }',
         "TensorFlow would not load this SavedModel: There is a cyclic dependency between functions, or one that is "
         "not there"),
        ("library {", 'library { function { signature { name: "h" } node_def { name: "n" op: "PartitionedCall" '
         'attr { key: "f" value { func { name: "gone" } } } } }',
         "TensorFlow would not load this SavedModel: There is a cyclic dependency between functions, or one that is "
         "not there"),
    ],
    ids=["function", "capture", "control output", "device", "type", "aggregation", "kind", "slots", "no slot",
         "unregistered", "dependency",
         "creator", "child", "missing function", "captured object", "uncreated", "constant", "asset", "shape", "cycle",
         "missing"],
)  # fmt: skip
def test_what_tensorflow_would_not_load_is_refused_called_or_not(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in SIGNATURE
    with pytest.raises(TargetError) as refused:
        saved_model.read_saved_model(model(tmp_path, SIGNATURE.replace(old, new, 1)))
    assert str(refused.value) == f"{tmp_path}: {said}"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("} saver_def { ",
         "saver_def must specify the save_tensor_name"),
        ('} saver_def { save_tensor_name: "s" restore_op_name: "a" filename_tensor_name: "b:0" ',
         "The name 'b:0' refers to a Tensor which does not exist. The operation, 'b', does not exist in the graph."),
        ('} saver_def { save_tensor_name: "s" restore_op_name: "b" filename_tensor_name: "a:0" ',
         "The name 'b' refers to an Operation not in the graph."),
        ("} asset_file_def { tensor_info { } ",
         "The name '' refers to an Operation not in the graph."),
        ('} asset_file_def { tensor_info { name: "a" } ',
         "All members of argument `feeds` must be tensors. Got the operation 'a'"),
        ('} asset_file_def { tensor_info { name: "a:b" } ',
         "The name 'a:b' looks a like a Tensor name, but is not a valid one. Tensor names must be of the form "
         '"<op_name>:<output_index>".'),
        ('} collection_def { key: "k" value { node_list { value: "b" } } ',
         "The name 'b' refers to an Operation not in the graph."),
        ('tensorflow_version: "/cpu:0" ',
         "Invalid version: '/cpu:0'"),
    ],
    ids=["saver", "file name", "restore", "no asset", "op as asset", "asset", "collection", "version"],
)  # fmt: skip
def test_what_tensorflow_would_not_load_of_a_tf1_model_is_refused(tmp_path: Path, part: str, said: str) -> None:
    with pytest.raises(TargetError) as refused:
        saved_model.read_saved_model(model(tmp_path, GRAPH.replace("}", part + "}", 1)))
    assert str(refused.value) == f"{tmp_path}: TensorFlow would not load this SavedModel: {said}"


def test_an_object_graph_without_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError) as refused:
        saved_model.read_saved_model(model(tmp_path, GRAPH.removesuffix("}") + "object_graph_def { } }"))
    assert str(refused.value) == f"{tmp_path}: its object graph is empty; save it again"


def test_a_tf1_model_with_all_its_parts_is_read(tmp_path: Path) -> None:
    parts = (
        'tensorflow_version: "1.15.0-rc1" } asset_file_def { tensor_info { name: "a:0" } } '
        'saver_def { save_tensor_name: "s" restore_op_name: "a" filename_tensor_name: "a:0" } '
        'collection_def { key: "k" value { node_list { value: "a:0" } } } '
        'collection_def { key: "unbound_inputs" value { node_list { value: "b" } } '
    )
    (program,) = saved_model.read_saved_model(model(tmp_path, GRAPH.replace("}", parts + "}", 1)))
    assert [node.name for node in program.graph.nodes] == ["a"]


def test_broken_directories_say_what_is_missing(tmp_path: Path) -> None:
    def message(path: Path) -> str:
        with pytest.raises(TargetError) as caught:
            saved_model.read_saved_model(path)
        return str(caught.value).replace(str(tmp_path), "DIR")

    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.keras").touch()
    model(tmp_path / "outer", "")
    (tmp_path / "outer" / "saved_model.pb").unlink()
    inner = model(tmp_path / "outer" / "1", GRAPH) / "saved_model.pb"
    assert message(tmp_path / "gone") == "DIR/gone does not exist"
    assert message(tmp_path / "empty") == "DIR/empty is not a SavedModel: saved_model.pb is missing; it is empty"
    assert message(tmp_path / "other").endswith("saved_model.pb is missing; it has model.keras")
    assert message(tmp_path / "outer").endswith("there is one in its subdirectory 1")
    assert message(inner).endswith("give the SavedModel's directory, the one with saved_model.pb in it")
    inner.write_bytes(inner.read_bytes()[:-3])
    assert "truncated or damaged" in message(inner.parent)
    inner.write_bytes(b"")
    assert "has no graph in it" in message(inner.parent)


@pytest.mark.tf
def test_captures_live_where_tensorflow_loads_them(tmp_path: Path) -> None:
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self) -> None:
            self.weight = tf.Variable(tf.ones([3]))
            self.count = tf.Variable(0)
            self.scale = tf.constant([1.0, 2.0, float(tf.random.uniform([]))])
            rows = tf.lookup.KeyValueTensorInitializer(["a"], [1])
            self.table = tf.lookup.StaticHashTable(rows, -1)

        @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.string)])
        def call(self, x: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
            return x * self.weight + self.scale + tf.cast(self.count + self.table.lookup(key), tf.float32)

    made = Model()
    tf.saved_model.save(made, str(tmp_path), signatures={"serve_it": made.call})
    (program,) = saved_model.read_saved_model(tmp_path)
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serve_it"]
    assert program.function is not None
    function = program.graph.library[program.function]
    assert program.name == "serve_it"
    assert len(program.arg_devices) == len(function.inputs) == len(loaded.inputs)
    assert [int(arg.dtype) for arg in function.inputs] == [arg.dtype.as_datatype_enum for arg in loaded.inputs]
    kept = {node.name for node in function.nodes} | {arg.name for arg in function.inputs}
    assert kept == {op.name for op in loaded.graph.get_operations()}
