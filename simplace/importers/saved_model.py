"""Read a SavedModel directory as data: each signature as a function call, a TF1 model as its graph.

Mirrors what tensorflow/python/saved_model/load.py makes of the directory, as far as placement depends on it.

A signature becomes the program that `tf.saved_model.load(directory).signatures[key](...)` runs when called from eager
code without a device scope. Its arguments live where loading and eager code put them:

- variables with the device that is the default at load time, whatever device they had when saved (load.py passes the
  saved device on only if `experimental_variable_policy` is set in the LoadOptions); int32 and string variables on the
  host, as VarHandleOp has no kernel for them elsewhere;
- tables and other resources on the device their saver demanded, else on the host, as their ops have CPU kernels only;
- int32 and string tensors, asset paths too, on the host; any other tensor on the default device.

`Program.arg_devices` holds `DEFAULT_DEVICE`, "", for what lives on the default device; who places the program fills it
in, since it depends on the devices there are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from simplace.errors import MalformedError, TargetError, UnreadableError, join_choices
from simplace.graph import graph_def, protos
from simplace.graph.dtypes import DataType
from simplace.graph.message_count import check_count, check_text
from simplace.graph.node_def import ArgDef, GraphDef
from simplace.importers.saved_objects import find_object_fault
from simplace.importers.session_model import find_session_fault
from simplace.input_file import LARGEST_MODEL_TEXT, read_bytes, read_text
from simplace.program.program import Program

DEFAULT_DEVICE = ""
HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
_HOST_ONLY = frozenset({DataType.DT_INT32, DataType.DT_STRING})
_DEVICE = re.compile(r"(?:^|/device:|/)(CPU|GPU)(?::(\d+))?$", re.IGNORECASE)
_LONGEST_PATH = 10_000
_BINARY, _TEXT = "saved_model.pb", "saved_model.pbtxt"


def read_saved_model(directory: str | Path, tags: Collection[str] | None = None) -> list[Program]:
    """Read the programs of a SavedModel: one per signature, sorted by key, or the graph of a TF1 model.

    `tags` choose among several MetaGraphs; without them there must be one only. A TF2 model without signatures gives
    a program per traced version of each of its functions. Raise `TargetError` for a directory that is no SavedModel.
    """
    model = _read_message(Path(directory))
    meta = _meta_graph(model, tags, directory)
    graph = _read_graph(meta, directory)
    is_of_session = not meta.HasField("object_graph_def")
    fault = find_session_fault(meta, graph) if is_of_session else find_object_fault(meta, graph)
    if fault:
        raise TargetError(f"{directory}: {fault}")
    if is_of_session:
        name = Path(directory).resolve().name
        return [Program(name, "graph", graph, soft_placement=False)]  # a session's own default
    objects = meta.object_graph_def
    functions = dict(_find_signatures(objects)) or dict(_find_functions(objects))
    if not functions:
        raise TargetError(f"{directory} has no signatures and no traced functions; save it with signatures=...")
    library = replace(graph, nodes=())
    return [_make_program(key, functions[key], library, objects, directory) for key in sorted(functions)]


def _read_message(directory: Path) -> Any:
    if not directory.exists():
        raise TargetError(f"{directory} does not exist")
    if not directory.is_dir():
        raise TargetError(f"{directory} is a file; give the SavedModel's directory, the one with {_BINARY} in it")
    try:
        if os.path.lexists(directory / _BINARY):
            data = read_bytes(directory / _BINARY)
            check_count("SavedModel", data)
            model = protos.message_class("SavedModel").FromString(data)
        elif os.path.lexists(directory / _TEXT):
            text = read_text(directory / _TEXT, LARGEST_MODEL_TEXT)
            check_text(text)
            model = protos.from_text("SavedModel", text)
        else:
            raise TargetError(f"{directory} is not a SavedModel: {_BINARY} is missing; {_describe_contents(directory)}")
    except (DecodeError, MalformedError) as error:
        raise TargetError(
            f"the saved_model file in {directory} is truncated or damaged; save the model again"
        ) from error
    except UnreadableError as error:
        raise TargetError(f"the SavedModel in {directory} cannot be read: {error}") from error
    if not model.meta_graphs:
        raise TargetError(f"the saved_model file in {directory} has no graph in it; save the model again")
    return model


def _read_graph(meta: Any, directory: str | Path) -> GraphDef:
    try:
        return graph_def.from_message(meta.graph_def)
    except UnreadableError as error:
        raise TargetError(f"the graph in {directory} cannot be read: {error}") from error


def _describe_contents(directory: Path) -> str:
    nested = sorted(path.parent.name for path in directory.glob(f"*/{_BINARY}"))
    if nested:
        return f"there is one in its subdirectory {join_choices(nested)}"
    names = [path.name for path in directory.iterdir()]
    return f"it has {join_choices(names, limit=4)}" if names else "it is empty"


def _meta_graph(model: Any, tags: Collection[str] | None, directory: str | Path) -> Any:
    if tags is None and len(model.meta_graphs) == 1:
        return model.meta_graphs[0]
    by_tags = {frozenset(meta.meta_info_def.tags): meta for meta in model.meta_graphs}
    found = None if tags is None else by_tags.get(frozenset(tags))
    if found is not None:
        return found
    count = len(model.meta_graphs)
    there = " | ".join(sorted(",".join(sorted(meta.meta_info_def.tags)) or "(none)" for meta in model.meta_graphs))
    asked = "" if tags is None else f", none with the tags {','.join(sorted(tags)) or '(none)'}"
    raise TargetError(f"{directory} has {count} MetaGraph(s){asked}; choose the tags of one of them: {there}")


def _find_signatures(objects: Any) -> Iterator[tuple[str, str]]:
    for child in objects.nodes[0].children:
        if child.local_name == "signatures":
            for signature in objects.nodes[child.node_id].children:
                node = objects.nodes[signature.node_id]
                if node.WhichOneof("kind") == "bare_concrete_function":
                    yield signature.local_name, node.bare_concrete_function.concrete_function_name


def _find_functions(objects: Any) -> Iterator[tuple[str, str]]:
    for node_id, path in _find_paths(objects).items():
        node = objects.nodes[node_id]
        if node.WhichOneof("kind") == "function":
            names = list(node.function.concrete_functions)
            for i, name in enumerate(names):
                yield (path if len(names) == 1 else f"{path}#{i}"), name


def _find_paths(objects: Any) -> dict[int, str]:
    """Name every object by its shortest path of attributes, the first one in file order of several.

    A path has at most `_LONGEST_PATH` characters; objects beyond have no name and are left out.
    """
    paths = {0: ""}
    queue = [0]
    for node_id in queue:
        for child in objects.nodes[node_id].children:
            child_id = child.node_id % len(objects.nodes)  # -1 is the last
            if child_id not in paths and len(paths[node_id]) + len(child.local_name) < _LONGEST_PATH:
                paths[child_id] = f"{paths[node_id]}.{child.local_name}".lstrip(".")
                queue.append(child_id)
    return paths


def _make_program(key: str, function: str, library: GraphDef, objects: Any, directory: str | Path) -> Program:
    bound = [objects.nodes[node_id] for node_id in objects.concrete_functions[function].bound_inputs]
    inputs = library.library[function].inputs
    free = len(inputs) - len(bound)
    if free < 0:
        raise TargetError(f"{directory}: {key!r} has {len(bound)} captures for {len(inputs)} arguments; save it again")
    devices = [_tensor_device(arg) for arg in inputs[:free]]
    devices += [_capture_device(arg, node) for arg, node in zip(inputs[free:], bound, strict=True)]
    return Program(key, "function", library, function=function, arg_devices=tuple(devices))


def _tensor_device(arg: ArgDef) -> str:
    return HOST if arg.dtype in _HOST_ONLY or arg.dtype == DataType.DT_RESOURCE else DEFAULT_DEVICE


def _capture_device(arg: ArgDef, node: Any) -> str:
    if arg.dtype != DataType.DT_RESOURCE:
        return _tensor_device(arg)
    if node.WhichOneof("kind") == "variable":
        return HOST if node.variable.dtype in _HOST_ONLY else DEFAULT_DEVICE
    if node.WhichOneof("kind") == "resource" and node.resource.device:
        return _full_name(str(node.resource.device))
    return HOST


def _full_name(device: str) -> str:
    """Complete what a saver wrote as Python's `tf.device` would, on the local process: "CPU", "/gpu:1" ..."""
    found = _DEVICE.search(device)
    return f"/job:localhost/replica:0/task:0/device:{found[1].upper()}:{found[2] or 0}" if found else HOST
