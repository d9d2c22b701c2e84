"""Optimize a placed graph by Grappler, for devices that need not be there: a process of its own.

The arguments are a JSON request, see `simplace.oracle.grappler_question`, and the process that waits for the answer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplace.oracle.orphan import end_with_parent

_SHAPES = "_output_shapes"
_GIVEN = "_given_shapes"  # of an argument: what Grappler knows
_FED = "_fed_shape"  # of an argument that a session's run feeds: what the graph says of it
_ITERATOR = "/iterator"
_TRANSPOSE = re.compile(r"-(?P<turn>Transpose\w+)-LayoutOptimizer$")  # generic_layout_optimizer_transposer.cc
_BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})


def main(request_file: str, parent: str) -> None:
    """Answer the request of a parent."""
    end_with_parent(int(parent))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    import tensorflow as tf  # reads the environment when it is imported

    graph = tf.compat.v1.GraphDef.FromString(Path(request["graph"]).read_bytes())
    resources = {name: bytes.fromhex(made) for name, made in request["resources"].items()}
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.ParseFromString(bytes.fromhex(request["rewriter"]))
    optimized = optimize_graph(tf, graph, request["kept"], resources, request["devices"], config)
    set_shapes(tf, graph, optimized, resources)
    Path(request["optimized"]).write_bytes(optimized.SerializeToString())


def optimize_graph(
    tf: Any, graph: Any, kept: list[str], resources: Mapping[str, bytes], devices: list[dict[str, Any]], config: Any
) -> Any:
    """Return the GraphDef that Grappler's meta optimizer makes of one; nodes without effect on those kept go."""
    from simplace.oracle.child.tf_private import cluster, device_properties_pb2, tf_optimizer

    shaped, arguments = _replace_arguments(tf, graph, resources)
    meta = tf.compat.v1.MetaGraphDef(graph_def=shaped)
    meta.collection_def["train_op"].node_list.value.extend(kept)
    named = [
        device_properties_pb2.NamedDevice(
            name=each["name"],
            properties=device_properties_pb2.DeviceProperties(**{key: each[key] for key in each if key != "name"}),
        )
        for each in devices
    ]
    there = cluster.Cluster(devices=named)
    optimized = tf_optimizer.OptimizeGraph(config, meta, verbose=False, cluster=there)
    for i in reversed(range(len(optimized.node))):
        argument = arguments.get(optimized.node[i].name)
        if argument is not None:
            optimized.node[i].CopyFrom(argument)
        elif optimized.node[i].name.removesuffix(_ITERATOR) in arguments:
            del optimized.node[i]
    return optimized


def _replace_arguments(tf: Any, graph: Any, resources: Mapping[str, bytes]) -> tuple[Any, dict[str, Any]]:
    """Copy a graph with variables, and elements of iterators, in place of arguments; return those, too, by name.

    Python's entrance to Grappler erases the shapes of arguments, which TensorFlow's own keeps, and does not trust those
    of placeholders. Neither does TensorFlow where a session feeds them.
    """
    copy, arguments = tf.compat.v1.GraphDef(), {}
    copy.CopyFrom(graph)
    for argument in graph.node:
        knows = _GIVEN in argument.attr or _FED in argument.attr
        if argument.name in resources or (knows and argument.attr["T"].type != tf.resource):
            arguments[argument.name] = argument
    for node in list(copy.node):
        if node.name in resources:
            device = node.device
            node.CopyFrom(tf.compat.v1.NodeDef.FromString(resources[node.name]))
            node.device, node.attr["shared_name"].s = device, node.name.encode()
        elif _FED in node.attr and node.name in arguments:
            shape, dtype = node.attr[_FED].shape, node.attr["T"].type
            made = tf.compat.v1.NodeDef(name=node.name, op="Placeholder", input=node.input, device=node.device)
            made.attr["dtype"].type = dtype
            made.attr["shape"].shape.CopyFrom(shape)
            node.CopyFrom(made)
        elif node.name in arguments:
            given, dtype = node.attr[_GIVEN], node.attr["T"].type
            handle = copy.node.add(name=node.name + _ITERATOR, op="IteratorV2", device=node.device)
            handle.attr["shared_name"].s = handle.attr["container"].s = b""
            node.op = "IteratorGetNext"
            node.attr.clear()
            node.input.append(handle.name)
            for made in (node, handle):
                made.attr["output_shapes"].CopyFrom(given)
                made.attr["output_types"].list.type.append(dtype)
    return copy, arguments


def set_shapes(tf: Any, before: Any, graph: Any, resources: Mapping[str, bytes]) -> None:
    """Set the shape of each output as TensorFlow infers it from what the graph before knew that no op tells.

    What that leaves open is as before, if it was there.
    """
    known = {node.name: node for node in before.node}
    better = _find_better(tf, known, _infer_shapes(tf, before, known, resources, {}))
    told = _find_better(tf, known, _infer_shapes(tf, before, known, resources, better)) if better else {}
    turned = _find_turned(graph)
    for output in [output for output in told if output[0] in turned]:
        del told[output]
    inferred = _infer_shapes(tf, graph, known, resources, told)
    for node in graph.node:
        shapes = [output.shape for output in inferred[node.name]]
        stated = [] if node.name in turned else _read_shapes(tf, known.get(node.name))
        if len(stated) == len(shapes):
            shapes = [a.merge_with(b) if a.is_compatible_with(b) else a for a, b in zip(shapes, stated, strict=True)]
        node.attr[_SHAPES].list.SetInParent()
        del node.attr[_SHAPES].list.shape[:]
        node.attr[_SHAPES].list.shape.extend(shape.as_proto() for shape in shapes)


def _read_shapes(tf: Any, node: Any) -> list[Any]:
    return [] if node is None else [tf.TensorShape(each) for each in node.attr[_SHAPES].list.shape]


def _find_better(tf: Any, known: Mapping[str, Any], inferred: Mapping[str, list[Any]]) -> dict[tuple[str, int], Any]:
    """Map outputs whose shapes are known better than TensorFlow infers them, as by `set_shape`, to a NodeDef.

    It is of an op that hands the output on with its shape. Where consumers took all such shapes in the first place,
    these are the outputs whose shapes do not follow from the inputs, as that of a loop's Merge.
    """
    found = {}
    for name, node in known.items():
        if node.op in _BACK_EDGES:
            continue  # to a Merge, which takes them as such only where nothing lies between
        for slot, (shape, output) in enumerate(zip(_read_shapes(tf, node), inferred[name], strict=False)):
            if shape.rank is not None and str(shape) != str(output.shape):
                made = tf.compat.v1.NodeDef(name=f"{name}/told_{slot}", op="EnsureShape", input=[f"{name}:{slot}"])
                made.attr["T"].type = output.dtype.as_datatype_enum
                made.attr["shape"].shape.CopyFrom(shape.as_proto())
                found[name, slot] = made
    return found


def _find_turned(graph: Any) -> set[str]:
    """Find the nodes that keep their names, but whose tensors may have their dimensions in another order.

    They lie between the transposes that the layout optimizer puts before nodes, named after these, and those that it
    puts behind.
    """
    turns = {node.name: match["turn"] for node in graph.node if (match := _TRANSPOSE.search(node.name))}
    takers: dict[str, list[str]] = {}
    for node in graph.node:
        for text in node.input:
            if not text.startswith("^"):
                takers.setdefault(text.partition(":")[0], []).append(node.name)
    before = {turns[name] for name in turns if any(name.startswith(f"{to}-") for to in takers.get(name, ()))}
    pending = [to for name in turns if turns[name] in before for to in takers.get(name, ())]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found and name not in turns:
            found.add(name)
            pending += takers.get(name, ())
    return found


def _infer_shapes(
    tf: Any, graph: Any, known: Mapping[str, Any], resources: Mapping[str, bytes], told: Mapping[tuple[str, int], Any]
) -> dict[str, list[Any]]:
    """Return the outputs of each node as TensorFlow imports the graph; consumers of those told take what is told."""
    copy, made = _make_importable(tf, graph, known, resources), tf.Graph()
    names = [node.name for node in copy.node]
    used = {}
    for node in copy.node:
        for place, text in enumerate(node.input):
            name, _, slot = text.partition(":")
            if (handed := told.get((name, int(slot or 0)))) is not None:
                node.input[place] = handed.name
                used[handed.name] = handed
    copy.node.extend(used.values())
    number = _number_nodes(copy)
    with made.as_default():
        tf.graph_util.import_graph_def(copy, name="")
    return {name: made.get_operation_by_name(number[name]).outputs for name in names}


def _number_nodes(graph: Any) -> dict[str, str]:
    """Give nodes names that may be imported: those that TensorFlow makes for a run begin with an underscore."""
    number = {node.name: f"n{i}" for i, node in enumerate(graph.node)}
    for node in graph.node:
        node.name = number[node.name]
        for place, text in enumerate(node.input):
            control, name = ("^", text[1:]) if text.startswith("^") else ("", text)
            name, colon, slot = name.partition(":")
            node.input[place] = f"{control}{number[name]}{colon}{slot}"
    return number


def _make_importable(tf: Any, graph: Any, known: Mapping[str, Any], resources: Mapping[str, bytes]) -> Any:
    """Copy a graph with inputs of known shapes in place of its arguments, and without colocation groups."""
    copy = tf.compat.v1.GraphDef()
    copy.CopyFrom(graph)
    for node in copy.node:
        for name in ("_class", _SHAPES, _GIVEN, _FED):
            node.attr.pop(name, None)
        if node.name in resources:
            handle = tf.compat.v1.NodeDef.FromString(resources[node.name])
            node.op = handle.op
            node.attr.clear()
            node.MergeFrom(handle)
        elif node.op in ("_Arg", "_DeviceArg"):
            dtype = node.attr["T"].type
            shapes = known[node.name].attr[_SHAPES].list.shape if node.name in known else ()
            node.op = "Placeholder"
            node.attr.clear()
            node.attr["dtype"].type = dtype
            node.attr["shape"].shape.CopyFrom(shapes[0] if shapes else tf.TensorShape(None).as_proto())
    return copy
