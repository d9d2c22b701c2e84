"""Read a tf.function of the running process as a program, asking only the object itself.

A traced function was traced under the devices of this process. Captured variables are taken to live where they would
if the program had been started on the devices in question: on a GPU that they are on here, in host memory if their
type allows no other, else on the default device, as in `simplace.importers.saved_model`.
"""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from typing import Any

from simplace.errors import TargetError
from simplace.graph import graph_def
from simplace.graph.captured_variables import name_captured_variables
from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, GraphDef
from simplace.importers.saved_model import DEFAULT_DEVICE, HOST
from simplace.program.program import NodeNotes, Program

_HOST_ONLY = frozenset({DataType.DT_INT32, DataType.DT_STRING})


def read_live_function(
    function: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
) -> Program:
    """Read a `tf.function`, traced for the arguments, or a concrete function; raise `TargetError` for anything else."""
    concrete = _get_concrete_function(function, arguments, keywords or {})
    message = concrete.graph.as_graph_def()
    library = graph_def.from_message(message)
    own = graph_def.function_from_message(concrete.function_def)
    graph = GraphDef((), {**library.library, own.name: own}, library.producer)
    name = str(getattr(function, "__name__", "") or concrete.graph.name)
    captured = concrete.captured_inputs
    free = len(own.inputs) - len(captured)
    devices = [_argument_device(arg) for arg in own.inputs[:free]]
    devices += [_captured_device(arg, tensor) for arg, tensor in zip(own.inputs[free:], captured, strict=True)]
    notes = {own.name: _collect_notes(concrete.graph)}
    return Program(name, "function", graph, function=own.name, arg_devices=tuple(devices), notes=notes)


def _get_concrete_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    if hasattr(function, "get_concrete_function"):
        return function.get_concrete_function(*arguments, **keywords)
    if hasattr(function, "function_def") and hasattr(function, "captured_inputs"):
        return function
    raise TargetError(
        f"a {type(function).__name__} cannot be placed; pass a tf.function, a concrete function, or the "
        "path of a script or model file"
    )


def _argument_device(arg: ArgDef) -> str:
    return HOST if arg.dtype in _HOST_ONLY or arg.dtype == DataType.DT_RESOURCE else DEFAULT_DEVICE


def _captured_device(arg: ArgDef, tensor: Any) -> str:
    device = str(tensor.device or "")
    if "/device:GPU:" in device:
        return device
    if _sees_gpus() and device:
        return device
    if arg.dtype != DataType.DT_RESOURCE:
        return _argument_device(arg)
    held = _held_type(tensor)
    return HOST if held is None or held in _HOST_ONLY else DEFAULT_DEVICE


def _sees_gpus() -> bool:
    """Return whether this process has GPUs; without GPUs, that a tensor is on the CPU means nothing."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and bool(tensorflow.config.list_logical_devices("GPU"))


def _held_type(handle: Any) -> int | None:
    """Return the data type of the variable behind a handle, None for a table or another resource."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return int(data.shape_and_type[0].dtype)


def _collect_notes(graph: Any) -> dict[str, NodeNotes]:
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")} | {*site.getsitepackages()}
    libraries = tuple(folders)
    notes = {
        op.name: NodeNotes(_find_user_line(op, libraries), shapes=_output_shapes(op)) for op in graph.get_operations()
    }
    for tensor, variable in name_captured_variables(graph).items():
        notes[tensor.partition(":")[0]] = NodeNotes(variable=variable, shapes=((),))
    return notes


def _find_user_line(op: Any, libraries: tuple[str, ...]) -> str:
    frames = [] if op.traceback is None else list(op.traceback)
    own = (frame for frame in reversed(frames) if not frame.filename.startswith(("<", *libraries)))
    return next((f"{frame.filename}:{frame.lineno}" for frame in own), "")


def _output_shapes(op: Any) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(
        None if output.shape.rank is None else tuple(-1 if size is None else size for size in output.shape.as_list())
        for output in op.outputs
    )
