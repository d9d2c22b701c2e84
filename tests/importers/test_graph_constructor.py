"""A graph that TensorFlow would not import is refused with TensorFlow's reason, told without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplace.errors import ImportRefusedError, TargetError
from simplace.graph import protos
from simplace.graph.graph_def import from_message, parse_graph_def, parse_text
from simplace.importers.import_graph_def import refuse_function, refuse_import
from simplace.kernels.registry import KernelTable
from tests.hostile.oracle import OURS, import_graphs

FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
X = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'
NEG = f'node {{ name: "n" op: "Neg" input: "x" {FLOAT} }}'
ADD = f'node {{ name: "s" op: "AddN" input: "x" input: "x" {FLOAT} attr {{ key: "N" value {{ i: 2 }} }} }}'
SIGNATURE = 'signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "b" type: DT_FLOAT } }'
CALL = 'node { name: "c" op: "f" input: "x" }'
PARTITIONED_CALL = (
    'node { name: "c" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "f" } } }'
    'attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }'
)


def body(node: str = f'name: "i" op: "Identity" input: "a" {FLOAT}', ret: str = "i:output:0") -> str:
    return f'function {{ {SIGNATURE} node_def {{ {node} }} ret {{ key: "b" value: "{ret}" }} }}'


def library(*functions: str) -> str:
    return f"library {{ {' '.join(functions)} }} {X}"


def pool(padding: str, ksize: str = "i: 1 i: 1 i: 1 i: 1") -> str:
    return X + (
        f'node {{ name: "p" op: "MaxPool" input: "x" attr {{ key: "padding" value {{ s: "{padding}" }} }} '
        f'attr {{ key: "ksize" value {{ list {{ {ksize} }} }} }} {FLOAT} '
        'attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } } }'
    )


NEEDS_Z = body(f'name: "i" op: "Identity" input: "z" {FLOAT}')
WITH = (
    'name: "i" op: "Identity" input: "a" attr { key: "T" value { type: DT_FLOAT } } attr { key: "more" value { %s } }'
)
OF_INTEGERS = body('name: "i" op: "Identity" input: "a" attr { key: "T" value { type: DT_INT32 } }')
LOOP = f"""
node {{ name: "e" op: "Enter" input: "x" {FLOAT} attr {{ key: "frame_name" value {{ s: "f" }} }} }}
node {{ name: "m" op: "Merge" input: "e" input: "t" {FLOAT} attr {{ key: "N" value {{ i: 2 }} }} }}
node {{ name: "t" op: "NextIteration" input: "k" attr {{ key: "T" value {{ type: DT_INT32 }} }} }}
node {{ name: "k" op: "Cast" input: "m" attr {{ key: "SrcT" value {{ type: DT_FLOAT }} }}
  attr {{ key: "DstT" value {{ type: DT_INT32 }} }} }}
"""
REFUSED = {
    "a name with a blank": (
        'node { name: "a b" op: "NoOp" }',
        "Node 'a b': Node name contains invalid characters",
    ),
    "a name of the insiders": (
        'node { name: "_a" op: "NoOp" }',
        "Node '_a': Node name contains invalid characters",
    ),
    "two of one name": (X + X, "Node 'x' is not unique"),
    "an input that is not there": (NEG, "Node 'n': Unknown input node 'x'"),
    "a data input after a control input": (
        X + f'node {{ name: "n" op: "Neg" input: "^x" input: "x" {FLOAT} }}',
        "Node 'n': Control dependencies must come after regular dependencies",
    ),
    "an output that is not there": (
        X + NEG.replace('"x"', '"x:1"'),
        "Node 'n': Connecting to invalid output 1 of source node x which has 1 outputs.",
    ),
    "a cycle": (NEG.replace('"x"', '"n"'), "1 nodes in a cycle"),
    "a missing attribute": (
        X + 'node { name: "n" op: "Neg" input: "x" }',
        "NodeDef missing attr 'T' from Op<name=Neg>; NodeDef: {{node n}}",
    ),
    "an attribute without a value": (
        X + 'node { name: "n" op: "Neg" input: "x" attr { key: "T" value { } } }',
        "AttrValue missing value with expected type 'type' for attr 'T'; NodeDef: {{node n}}; Op<name=Neg>",
    ),
    "an attribute of another kind": (
        X + 'node { name: "n" op: "Neg" input: "x" attr { key: "T" value { i: 1 } } }',
        "AttrValue had value with type 'int' when 'type' expected for attr 'T'; NodeDef: {{node n}}; Op<name=Neg>",
    ),
    "a list of two kinds": (
        pool("SAME", 'i: 1 s: "a"'),
        "AttrValue had value with type 'list(string)' when 'list(int)' expected for attr 'ksize'; "
        "NodeDef: {{node p}}; Op<name=MaxPool>",
    ),
    "an unknown type": (
        X + NEG.replace("DT_FLOAT", "177"),
        "AttrValue has invalid DataType enum: 177 for attr 'T'; NodeDef: {{node n}}; Op<name=Neg>",
    ),
    "a type of references": (
        X + NEG.replace("DT_FLOAT", "DT_FLOAT_REF"),
        "AttrValue must not have reference type value of float_ref for attr 'T'; NodeDef: {{node n}}; Op<name=Neg>",
    ),
    "a type that is not allowed": (
        X + NEG.replace("DT_FLOAT", "DT_STRING"),
        "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half, float, double, int8, "
        "int16, int32, int64, complex64, complex128; NodeDef: {{node n}}; Op<name=Neg>",
    ),
    "a word that is not allowed": (
        pool("MOST"),
        "Value for attr 'padding' of \"MOST\" is not in the list of allowed values: "
        '"SAME", "VALID", "EXPLICIT"; NodeDef: {{node p}}; Op<name=MaxPool>',
    ),
    "a number below the least": (
        X + ADD.replace("i: 2", "i: 0"),
        "Value for attr 'N' of 0 must be at least minimum 1; NodeDef: {{node s}}; Op<name=AddN>",
    ),
    "more inputs than written": (
        X + ADD.replace("i: 2", "i: 3"),
        "NodeDef expected inputs 'float, float, float' do not match 2 inputs specified; Op<name=AddN>; "
        "NodeDef: {{node s}}",
    ),
    "an input of another type": (
        X.replace("DT_FLOAT", "DT_INT32") + NEG,
        "Input 0 of node n was passed int32 from x:0 incompatible with expected float.",
    ),
    "a loop that changes a type": (
        X + LOOP,
        "Input 1 of node m was passed int32 from t:0 incompatible with expected float.",
    ),
    "a group of nobody": (
        X + NEG.replace(FLOAT, FLOAT + ' attr { key: "_class" value { list { s: "loc:@nobody" } } }'),
        "Node 'n' expects to be colocated with unknown node 'nobody'",
    ),
    "a type as groups": (
        X + NEG.replace(FLOAT, FLOAT + ' attr { key: "_class" value { type: DT_FLOAT } }'),
        "'DType' object is not iterable",
    ),
    "an unknown type as groups": (
        X + NEG.replace(FLOAT, FLOAT + ' attr { key: "_class" value { type: 65536 } }'),
        "Cannot convert the argument `type_value`: 65536 to a TensorFlow DType.",
    ),
    "a type as groups, in a graph from the future": (
        X
        + NEG.replace(FLOAT, FLOAT + ' attr { key: "_class" value { type: DT_FLOAT } }')
        + " versions { producer: 9999 }",
        "'DType' object is not iterable",
    ),
    "too few shapes": (
        X + NEG.replace(FLOAT, FLOAT + ' attr { key: "_output_shapes" value { list { } } }'),
        "Node 'n' has 1 outputs but the _output_shapes attribute specifies shapes for 0 outputs",
    ),
    "a device that cannot be read": (
        X + NEG.replace("input", 'device: "gpu0" input'),
        "Unknown attribute 'gpu0' is encountered while parsing the device spec: 'gpu0'.",
    ),
    "two functions of one name": (
        library(body(), body(ret="a")),
        "Cannot add function 'f' because a different function with the same name already exists.",
    ),
    "a tensor without a type, unequal to itself": (
        library(body(WITH % "tensor { float_val: 1 }")),
        "Cannot add function 'f' because a different function with the same name already exists.",
    ),
    "such a tensor bound to a function": (
        library(body(WITH % 'func { name: "g" attr { key: "v" value { tensor { float_val: 1 } } } }')),
        "Cannot add function 'f' because a different function with the same name already exists.",
    ),
    "such a tensor as an attribute of a function": (
        library(body().replace("ret {", 'attr { key: "_more" value { tensor { } } } ret {')),
        "Cannot add function 'f' because a different function with the same name already exists.",
    ),
    "a function called like an op": (
        library(body().replace('name: "f"', 'name: "Neg"')),
        "Cannot add function 'Neg' because an op with the same name already exists.",
    ),
    "a gradient of nobody": (
        f'library {{ {body()} gradient {{ function_name: "g" gradient_func: "f" }} }} {X}',
        "FunctionDefLibrary missing 'g' FunctionDef",
    ),
    "a call with too many inputs": (
        f'library {{ {body()} }} {X} node {{ name: "c" op: "f" input: "x" input: "x" }}',
        "NodeDef expected inputs 'float' do not match 2 inputs specified; Op<name=f>; NodeDef: {{node c}}",
    ),
    "a value where the function takes a reference": (
        library(body().replace('name: "a" type: DT_FLOAT', 'name: "a" type: DT_FLOAT is_ref: true')) + CALL,
        "Input 0 of node c was passed float from x:0 incompatible with expected float_ref.",
    ),
    "more tensors than 32 bits can count": (
        X + ADD.replace("i: 2", "i: 4294967296"),
        "Number of outputs is too big: 4294967296",
    ),
    "a result without a type": (
        library(body().replace('name: "b" type: DT_FLOAT', 'name: "b"')) + PARTITIONED_CALL,
        "Invalid ret types b : INVALID vs. float In function output b:",
    ),
    "an output beyond 32 bits": (
        X + NEG.replace('"x"', '"x:10000000000"'),
        "Node 'n': Connecting to invalid output 1410065408 of source node x which has 1 outputs.",
    ),
    "an output beyond 64 bits": (
        X + NEG.replace('"x"', '"x:18446744073709551616"'),
        "Node 'n': Unknown input node 'x:18446744073709551616'",
    ),
    "a list without its length": (
        library(body().replace('name: "a" type: DT_FLOAT', 'name: "a" number_attr: "N" type: DT_FLOAT'))
        + PARTITIONED_CALL,
        "number attr not found: N In a:N*float",
    ),
    "a name with a NUL": (X.replace('"x"', '"a b\\000c"'), "Node 'a b"),
    "an argument whose node has no name, which no call passes": (
        library(body().replace("output_arg", 'input_arg { name: "" type: DT_FLOAT } output_arg')) + PARTITIONED_CALL,
        "Node '': Node name contains invalid characters",
    ),
    "an argument whose node may begin with _, but not go on so after >, which no call passes": (
        library(body().replace("output_arg", 'input_arg { name: "a>_b" type: DT_FLOAT } output_arg'))
        + PARTITIONED_CALL,
        "Node 'a>_b': Node name contains invalid characters",
    ),
    "an argument with the name of a result's node, which no call passes": (
        library(body().replace("output_arg", 'input_arg { name: "b_RetVal" type: DT_FLOAT } output_arg'))
        + PARTITIONED_CALL,
        "Node 'b_RetVal' is not unique",
    ),
    "a body that reads what it has not": (
        library(NEEDS_Z) + CALL,
        "input z is not found: {{node i}} In {{node i}}",
    ),
    "a body that returns what it has not": (
        library(body(ret="i:output:1")) + CALL,
        "Return b -> i:output:1 is not found. In function output b:float",
    ),
    "a body of other types": (
        library(OF_INTEGERS) + CALL,
        "input input[0] expected type int32 != float, the type of a[0] In {{node i}}",
    ),
    "a merge that reads a cycle": (
        X
        + LOOP.replace("DT_INT32", "DT_FLOAT").replace('input: "t"', 'input: "t" input: "n"').replace("i: 2", "i: 3")
        + NEG.replace('"x"', '"n"'),
        "1 nodes in a cycle",
    ),
    "a consumer from the future": (
        f"{X} versions {{ min_consumer: 100000 }}",
        "GraphDef min consumer version 100000 above current version 2474 for TensorFlow 2.21.0.  "
        "Please upgrade TensorFlow.",
    ),
    "a producer that warns of this consumer": (
        f"{X} versions {{ bad_consumers: 2474 }}",
        "GraphDef disallows consumer version 2474.  Please upgrade TensorFlow: this version is likely buggy.",
    ),
}
TAKEN = {
    "what holds together": f"{library(body(), body())} {NEG} {ADD} {CALL} {LOOP.replace('DT_INT32', 'DT_FLOAT')}",
    "an attribute without a name": X + NEG.replace(FLOAT, FLOAT + " attr { value { b: false } }"),
    "an internal attribute, not compared": library(body(WITH.replace("more", "_internal") % "tensor { float_val: 1 }")),
    "a list, compared as bytes": library(
        body(WITH % 'list { tensor { float_val: 1 } func { name: "g" attr { key: "v" value { tensor { } } } } }')
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_graph_is_refused_with_tensorflows_reason(case: str) -> None:
    text, reason = REFUSED[case]
    with pytest.raises(ImportRefusedError) as caught:
        refuse_import(parse_text(text), KernelTable.shipped("2.21"))
    assert str(caught.value) == OURS + reason


@pytest.mark.tf
def test_tensorflow_gives_the_same_reasons() -> None:
    import tensorflow as tf

    if not tf.version.VERSION.startswith("2.21"):
        pytest.skip("the reasons name the version 2.21")
    texts = {name: text for name, (text, _) in REFUSED.items()} | TAKEN
    said = {name: reason for name, (_, reason) in REFUSED.items()} | dict.fromkeys(TAKEN, "")
    graphs = [protos.from_text("GraphDef", text).SerializeToString() for text in texts.values()]
    assert dict(zip(texts, import_graphs(graphs), strict=True)) == said


@pytest.mark.parametrize("case", TAKEN)
def test_a_graph_is_taken(case: str) -> None:
    message = protos.from_text("GraphDef", TAKEN[case]).SerializeToString()
    for version in KernelTable.versions():
        refuse_import(parse_graph_def(message), KernelTable.shipped(version))


def test_a_newer_graph_is_told_to_be_newer() -> None:
    with pytest.raises(ImportRefusedError, match="produced by a binary built when GraphDef version was 9999"):
        refuse_import(parse_text(NEG + " versions { producer: 9999 }"), KernelTable.shipped("2.21"))


@pytest.mark.parametrize(("attribute", "op"), [("num_split", "Split"), ("N", "AddN"), ("N", "Pack")])
def test_a_hundred_million_tensors_are_counted_not_made(attribute: str, op: str, tmp_path) -> None:
    many = f'attr {{ key: "{attribute}" value {{ i: 100000000 }} }}'
    node = f'node {{ name: "n" op: "{op}" input: "x" input: "x" {FLOAT} {many} }}'
    with pytest.raises(TargetError, match=r"100,000,000 tensors|100000000 tensors"):
        refuse_import(parse_text(X + node), KernelTable.shipped())


@pytest.mark.tf
def test_what_tensorflow_traced_itself_is_taken(tmp_path: Path) -> None:
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = tf.Variable([1.0, 2.0])
            pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2]))
            self.table = tf.lookup.StaticHashTable(pairs, 0)

        @tf.function
        def loop(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            while tf.reduce_sum(x) < 10.0:
                x = x + self.v[0]
                if x[0] > 3.0:
                    x = x * 2.0
                else:
                    tf.print(x)
            return {"y": x, "z": tf.switch_case(tf.cast(x[0], tf.int32), [lambda: 1.0, lambda: 2.0])}

        @tf.function
        def look(self, keys: tf.Tensor) -> dict[str, tf.Tensor]:
            total = tf.constant(0, tf.int64)
            for batch in tf.data.Dataset.range(3).map(lambda one: one + 1).batch(2):
                total += tf.reduce_sum(batch)
            doubled = tf.map_fn(lambda one: one * 2.0, self.v)
            ragged = tf.RaggedTensor.from_row_splits([1.0, 2.0], [0, 1, 2]).to_tensor()
            return {"found": self.table.lookup(keys), "total": total, "doubled": doubled, "ragged": ragged}

        @tf.function
        def slope(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.nn.relu(x * self.v))
            self.v.assign_add(x)
            tf.debugging.assert_positive(y)
            return {"slope": tape.gradient(y, x)}

    model, table = Model(), KernelTable.shipped(tf.version.VERSION)
    specs = {"loop": tf.TensorSpec([None]), "look": tf.TensorSpec([None], tf.string), "slope": tf.TensorSpec([2])}
    traced = {name: getattr(model, name).get_concrete_function(spec) for name, spec in specs.items()}
    tf.saved_model.save(model, str(tmp_path), signatures=traced)
    saved = protos.message_class("SavedModel").FromString((tmp_path / "saved_model.pb").read_bytes())
    graphs = [from_message(saved.meta_graphs[0].graph_def)]
    graphs += [from_message(function.graph.as_graph_def()) for function in traced.values()]
    for graph in graphs:
        refuse_import(graph, table)
        for name in graph.library:
            refuse_function(graph, name, table)
    assert sum(len(graph.library) for graph in graphs) > 50


def test_a_function_that_nobody_calls_is_loaded_and_needs_ops_that_are_there() -> None:
    graph = parse_text(library(body(), named("g", 'name: "i" op: "Gone"')))
    with pytest.raises(ImportRefusedError) as refused:
        refuse_function(graph, "f", KernelTable.shipped())
    assert str(refused.value) == "TensorFlow would not load the function 'g': Op type not registered 'Gone'"


def named(name: str, call: str) -> str:
    """Write a function of that name whose one node is a call."""
    return body(call).replace('"f"', f'"{name}"', 1)


def call_directly(name: str) -> str:
    return f'name: "i" op: "{name}" input: "a"'


def call_by_attribute(name: str) -> str:
    return (
        PARTITIONED_CALL.removeprefix("node {")
        .removesuffix("}")
        .replace('"f" } }', f'"{name}" }} }}')
        .replace("x", "a")
    )


@pytest.mark.parametrize("call", [call_directly, call_by_attribute])
def test_functions_that_call_each_other_are_refused(call: Callable[[str], str]) -> None:
    """TensorFlow has no words for it: looking into them, its process runs out of stack."""
    graph = parse_text(library(named("f", call("g")), named("g", call("f"))) + CALL)
    with pytest.raises(ImportRefusedError, match=r"calls itself .*, which ends TensorFlow's process"):
        refuse_import(graph, KernelTable.shipped())


def test_a_function_that_nothing_calls_may_call_itself() -> None:
    refuse_import(parse_text(library(body('name: "i" op: "f" input: "a"'))), KernelTable.shipped())


def test_a_function_may_have_any_name() -> None:
    named = (library(body()) + CALL).replace('"f"', '"f $:x"')
    graph = parse_text(named)
    refuse_import(graph, KernelTable.shipped())
    assert [node.op for node in graph.nodes] == ["Placeholder", "f $:x"]
