"""Sound inputs that mutations start from: graphs, SavedModels, Keras files, machine files, device lists."""

from __future__ import annotations

import json
from typing import Any

from simplace.graph import protos

PLAIN = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
node { name: "w" op: "Const" device: "/device:CPU:0" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4 } dim { size: 4 } }
    float_val: 1 } } } }
node { name: "dense/MatMul" op: "MatMul" input: "x" input: "w" device: "/device:GPU:0"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "transpose_a" value { b: false } } }
node { name: "dim" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "split" op: "Split" input: "dim" input: "dense/MatMul"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "num_split" value { i: 2 } } }
node { name: "sum" op: "AddN" input: "split" input: "split:1" device: "/gpu:1"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
node { name: "act" op: "Relu" input: "sum" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "_class" value { list { s: "loc:@sum" } } } }
node { name: "text" op: "AsString" input: "act" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "pool" op: "MaxPool" input: "image" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "ksize" value { list { i: 1 i: 2 i: 2 i: 1 } } }
      attr { key: "strides" value { list { i: 1 i: 2 i: 2 i: 1 } } }
  attr { key: "padding" value { s: "SAME" } } }
node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "many" op: "IdentityN" input: "act" input: "dim"
      attr { key: "T" value { list { type: DT_FLOAT type: DT_INT32 } } }
  attr { key: "_output_shapes" value { list { shape { unknown_rank: true } shape { } } } } }
node { name: "done" op: "NoOp" input: "^act" input: "^pool" }
versions { producer: 1286 }
"""

LOOP = """
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "enter" op: "Enter" input: "zero" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "frame_name" value { s: "loop" } } attr { key: "is_constant" value { b: false } }
  attr { key: "parallel_iterations" value { i: 10 } } }
node { name: "merge" op: "Merge" input: "enter" input: "next" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "N" value { i: 2 } } }
node { name: "ten" op: "Const" input: "^merge" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 10 } } } }
node { name: "less" op: "Less" input: "merge" input: "ten" attr { key: "T" value { type: DT_INT32 } } }
node { name: "cond" op: "LoopCond" input: "less" }
node { name: "switch" op: "Switch" input: "merge" input: "cond" attr { key: "T" value { type: DT_INT32 } } }
node { name: "body" op: "AddV2" input: "switch:1" input: "switch:1" attr { key: "T" value { type: DT_INT32 } } }
node { name: "next" op: "NextIteration" input: "body" attr { key: "T" value { type: DT_INT32 } } }
node { name: "exit" op: "Exit" input: "switch" attr { key: "T" value { type: DT_INT32 } } }
node { name: "var" op: "VariableV2" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "shape" value { shape { } } } }
node { name: "assign" op: "Assign" input: "var" input: "exit" attr { key: "T" value { type: DT_INT32 } }
  attr { key: "_class" value { list { s: "loc:@var" } } } }
versions { producer: 2474 min_consumer: 12 }
"""

CALLS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "pred" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } }
node { name: "call" op: "PartitionedCall" input: "x" attr { key: "Tin" value { list { type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "f" value { func { name: "twice" } } } }
node { name: "direct" op: "twice" input: "call" }
node { name: "if" op: "StatelessIf" input: "pred" input: "direct" attr { key: "Tcond" value { type: DT_BOOL } }
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "then_branch" value { func { name: "twice" } } }
      attr { key: "else_branch" value { func { name: "other" } } }
  attr { key: "_lower_using_switch_merge" value { b: true } } }
library {
  function {
    signature { name: "twice" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }
    node_def { name: "add" op: "AddV2" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "out" op: "Identity" input: "add:z:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "b" value: "out:output:0" }
  }
  function {
    signature { name: "other" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT }
      is_stateful: true control_output: "p" }
    node_def { name: "call" op: "StatefulPartitionedCall" input: "a"
      attr { key: "Tin" value { list { type: DT_FLOAT } } }
      attr { key: "Tout" value { list { type: DT_FLOAT } } } attr { key: "f" value { func { name: "twice" } } } }
    node_def { name: "p" op: "NoOp" input: "^call" }
    ret { key: "b" value: "call:output:0" } control_ret { key: "p" value: "p" }
  }
}
versions { producer: 2000 }
"""

GRAPHS = (PLAIN, LOOP, CALLS)

MACHINES = (
    'name = "my workstation"\ncpus = 1\nvisible = [1, 0]\n[[gpu]]\nname = "T4"\ncount = 2\nmemory = "16 GiB"\n'
    'virtual = ["4 GiB", "4 GiB"]\n',
    'name = "two"\nmemory = "8 GiB"\nconnected = true\n[[task]]\njob = "ps"\ncpus = 1\n[[task]]\njob = "worker"\n'
    "index = 0\ncount = 2\ngpus = 2\n",
    '[[gpu]]\ncount = 2\n[[shared_link]]\nname = "switch"\nbandwidth = "16 GB/s"\ngpus = [0, 1]\n',
    '[[task]]\ncount = 2\ngpus = 1\n[[shared_link]]\nname = "card"\ntasks = ["worker:0"]\n'
    '[[shared_link]]\nname = "switch"\ntask = "worker:1"\ngpus = [0]\n',
)

KERNELS = (
    '[[op]]\nname = "MyScan"\ninputs = ["x: T", "weights: N * float"]\noutputs = ["y: Ref(T)"]\n'
    'attrs = ["T: {float, double} = DT_FLOAT", "N: int >= 1", "mode: string = \'fast\'"]\nstateful = true\n'
    '[[kernel]]\nop = "MyScan"\ndevice = "GPU"\ntypes = { T = ["float"] }\nhost_memory = ["x"]\npriority = 1\n',
)

DEVICES = (
    "cpu:1,gpu:2",
    "ps=cpu:1+2xworker=gpu:2",
    "/job:worker/task:0=cpu:1,gpu:2",
    "gpu",
)

COSTS = {
    "schema": "simplace/costs/1", "nodes": {"sum": 0.001, "act": 1}, "intra_op": 1, "averages": {"sum": 0.5},
    "includes_overheads": True, "gap": 0.0, "overheads": {"op_s": 0.1},
}  # fmt: skip

LOG = (
    "sum: (AddN): /job:localhost/replica:0/task:0/device:GPU:0\n"
    "act: (Relu): /job:localhost/replica:0/task:0/device:CPU:0\n"
)

WORDS = (
    ("show", "{graph}", "--soft", "--table"),
    ("show", "{graph}", "--soft", "--visible", "0", "--program", "graph"),
    ("explain", "{graph}", "--soft", "sum"),
    ("schedule", "{graph}", "--soft", "--inter-op", "1,2", "--steps", "2", "--batch", "4", "--cores", "4"),
    ("doctor", "{graph}", "--soft"),
    ("diff", "{graph}", "--soft", "--pin", "dense*=CPU"),
    ("kernels", "MatMul", "--dtype", "float"),
    ("show", "{graph}", "--soft", "--tensorflow", "2.18"),
)


def graph(text: str) -> Any:
    """Parse the text of a GraphDef."""
    return protos.from_text("GraphDef", text)


_SIGNATURE = """
canonicalized_input_signature { tuple_value { values { tuple_value { %s } } values { dict_value { } } } }
output_signature { tensor_spec_value { name: "b" shape { unknown_rank: true } dtype: DT_FLOAT } }
"""
_ARGUMENT = 'values { tensor_spec_value { name: "a" shape { unknown_rank: true } dtype: DT_FLOAT } }'
_OBJECTS = """
nodes { children { local_name: "signatures" node_id: 1 } children { local_name: "f" node_id: 3 }
  user_object { identifier: "_generic_user_object" version { producer: 1 min_consumer: 1 } } }
nodes { children { local_name: "serving_default" node_id: 2 }
  user_object { identifier: "signature_map" version { producer: 1 min_consumer: 1 } } }
nodes { bare_concrete_function { concrete_function_name: "other" argument_keywords: "a"
  allowed_positional_arguments: 1 } }
nodes { function { concrete_functions: "twice" function_spec { input_signature { tuple_value { } }
  fullargspec { named_tuple_value { name: "FullArgSpec" values { key: "args" value { list_value { } } }
    values { key: "varargs" value { none_value { } } } values { key: "varkw" value { none_value { } } }
    values { key: "defaults" value { none_value { } } } values { key: "kwonlyargs" value { list_value { } } }
    values { key: "kwonlydefaults" value { none_value { } } } values { key: "annotations" value { dict_value { } } }
} } } } }
nodes { variable { dtype: DT_FLOAT shape { } } }
"""


def saved_model() -> Any:
    """Make a SavedModel with one signature, and a function that captures a variable, as TensorFlow loads it.

    Its checkpoint is missing, as simplace reads none.
    """
    model = protos.message_class("SavedModel")(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(graph(CALLS))
    del meta.graph_def.node[:]
    objects = meta.object_graph_def
    objects.CopyFrom(protos.from_text("SavedObjectGraph", _OBJECTS))
    for name, arguments, bound in (("other", _ARGUMENT, []), ("twice", "", [4])):
        function = protos.from_text("SavedConcreteFunction", _SIGNATURE % arguments)
        function.bound_inputs.extend(bound)
        objects.concrete_functions[name].CopyFrom(function)
    return model


def keras_config() -> str:
    """Write the configuration of a functional model: two inputs, a sum, a nested Sequential."""
    dense = {"class_name": "Dense", "module": "keras.layers", "config": {"name": "d", "units": 3, "activation": "relu"}}
    inner = {
        "class_name": "Sequential", "module": "keras", "name": "inner",
        "config": {"name": "inner", "layers": [_input("i", 4), dense]},
        "inbound_nodes": [{"args": [_tensor("add")], "kwargs": {}}],
    }  # fmt: skip
    add = {
        "class_name": "Add", "module": "keras.layers", "name": "add", "config": {"name": "add", "dtype": "float32"},
        "inbound_nodes": [{"args": [[_tensor("a"), _tensor("b")]], "kwargs": {}}],
    }  # fmt: skip
    config = {
        "name": "model", "layers": [_input("a", 4), _input("b", 4), add, inner],
        "input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": [["inner", 0, 0]],
    }  # fmt: skip
    return json.dumps({"class_name": "Functional", "module": "keras.src.models.functional", "config": config})


def _input(name: str, size: int) -> dict[str, Any]:
    config = {"batch_shape": [None, size], "dtype": "float32", "name": name}
    return {"class_name": "InputLayer", "module": "keras.layers", "name": name, "config": config, "inbound_nodes": []}


def _tensor(name: str) -> dict[str, Any]:
    config = {"shape": [None, 4], "dtype": "float32", "keras_history": [name, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": config}
