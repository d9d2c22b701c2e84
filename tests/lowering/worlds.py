"""Small programs in text form, and the graphs that come of them in text form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simplace.devices.device_set import DeviceSet, local_devices
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import ArgDef, FuncRef, FunctionDef, GraphDef, NodeDef, ShapeAttr, TensorInfo
from simplace.kernels.registry import KernelTable
from simplace.lowering.prepare_graph import prepare_graph
from simplace.program.program import Program

FLOAT = DataType.DT_FLOAT
INT32 = DataType.DT_INT32
BOOL = DataType.DT_BOOL
RESOURCE = DataType.DT_RESOURCE
TABLE = KernelTable.shipped()
DEVICES: DeviceSet = local_devices([("CPU", 1), ("GPU", 2)])
CPU0, GPU0, GPU1 = (device.name for device in DEVICES)
_NODE = re.compile(r"(?P<name>\S+) = (?P<op>\S+?)\((?P<inputs>[^)]*)\)(?: @(?P<device>\S+))?(?: \{(?P<attrs>.*)\})?$")
_NAMES = {
    "float": FLOAT,
    "int32": INT32,
    "half": DataType.DT_HALF,
    "uint64": DataType.DT_UINT64,
    "int64": DataType.DT_INT64,
    "bool": BOOL,
    "resource": RESOURCE,
    "string": DataType.DT_STRING,
    "variant": DataType.DT_VARIANT,
    "fn": FuncRef,
    "shape": ShapeAttr((2,)),
    "dims": lambda *sizes: ShapeAttr(sizes),
    "number": lambda value: TensorInfo(INT32, (), value),
}


def nodes(text: str) -> tuple[NodeDef, ...]:
    """Read lines such as `y = AddV2(x, c, ^a) @/device:GPU:0 {T=float}`; T is float where nothing is said."""
    return tuple(_node(line.strip()) for line in text.strip().splitlines() if line.strip())


def _node(line: str) -> NodeDef:
    found = _NODE.match(line)
    assert found is not None, f"a node looks like `y = Op(x)`, not {line!r}"
    attrs: dict[str, Any] = {"T": FLOAT}
    attrs.update(eval(f"dict({found['attrs'] or ''})", dict(_NAMES)))
    inputs = tuple(text.strip() for text in found["inputs"].split(",") if text.strip())
    return NodeDef(found["name"], found["op"], found["device"] or "", inputs, attrs)


def function(
    signature: str,
    text: str,
    ret: Mapping[str, str],
    *,
    control_ret: tuple[str, ...] = (),
    attrs: Mapping[str, Any] | None = None,
) -> FunctionDef:
    """Make a function from `name(x: float, i: int32) -> y: float` and its nodes."""
    name, inputs, outputs = re.fullmatch(r"(\w+)\((.*)\) ->\s*(.*)", signature).groups()  # type: ignore[union-attr]
    return FunctionDef(
        name, _args(inputs), _args(outputs), nodes(text), ret, {key: key for key in control_ret}, (), attrs or {}, {}
    )


def _args(text: str) -> tuple[ArgDef, ...]:
    pairs = (part.split(":") for part in text.split(",") if part.strip())
    return tuple(ArgDef(name.strip(), _NAMES[dtype.strip()]) for name, dtype in pairs)  # type: ignore[arg-type]


def call_program(*functions: FunctionDef, devices: tuple[str, ...] | None = None, soft: bool = True) -> Program:
    """Make the program that calls the first function; its arguments are on CPU:0 unless `devices` says otherwise."""
    first = functions[0]
    places = devices or (CPU0,) * len(first.inputs)
    library = {one.name: one for one in functions}
    return Program("p", "function", GraphDef((), library), first.name, places, soft_placement=soft)


def session_program(text: str, *functions: FunctionDef, kept: Mapping[str, str] | None = None) -> Program:
    """Make the program of a session's graph."""
    return Program("p", "session", GraphDef(nodes(text), {one.name: one for one in functions}), kept_devices=kept or {})


def prepared(program: Program) -> Graph:
    """Prepare for CPU:0 and two GPUs, a function as called on GPU:0."""
    return prepare_graph(program, TABLE, DEVICES, GPU0 if program.function else None)


def lines(graph: Graph) -> str:
    """Print a graph a line a node, device names shortened, `_class` at the end."""
    shown = []
    for line, attrs in zip(str(graph).splitlines(), graph.attrs[2:], strict=True):
        text = line.replace("/job:localhost/replica:0/task:0/device:", "")
        shown.append(text + _groups(attrs.get("_class")))
    return "\n".join(shown)


def _groups(value: Any) -> str:
    if value is None:
        return ""
    return f" {value!r}" if isinstance(value, bytes) else f" [{', '.join(name.decode() for name in value)}]"


def same(graph: Graph, expected: str) -> bool:
    """Compare `lines` with an indented block; show both where they differ."""
    wanted = "\n".join(line.strip() for line in expected.strip().splitlines())
    assert lines(graph) == wanted
    return True
