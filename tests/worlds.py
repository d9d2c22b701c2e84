"""Small placed graphs for tests, made from GraphDef text with the shipped kernel table and no TensorFlow."""

from __future__ import annotations

from functools import cache

from simplace.devices.device_set import local_devices
from simplace.graph.graph_def import parse_text
from simplace.kernels.registry import KernelTable
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import NodeNotes, Program

TASK = "/job:localhost/replica:0/task:0"
CPU = f"{TASK}/device:CPU:0"
GPU0 = f"{TASK}/device:GPU:0"
GPU1 = f"{TASK}/device:GPU:1"


@cache
def shipped() -> KernelTable:
    return KernelTable.shipped()


def node(name: str, op: str, *inputs: str, device: str = "", dtype: str = "DT_FLOAT", extra: str = "") -> str:
    """Write one node in GraphDef text; `dtype` fills the attribute T (or dtype)."""
    key = "dtype" if op in ("Placeholder", "VarHandleOp", "ReadVariableOp", "VariableV2", "Const") else "T"
    lines = [f'name: "{name}" op: "{op}" device: "{device}"', *[f'input: "{i}"' for i in inputs]]
    lines.append(f'attr {{ key: "{key}" value {{ type: {dtype} }} }} {extra}')
    return "node { " + " ".join(lines) + " }"


def constant(name: str, dims: tuple[int, ...], device: str = "", dtype: str = "DT_FLOAT") -> str:
    """Write a constant of a shape, its content left out."""
    shape = " ".join(f"dim {{ size: {d} }}" for d in dims)
    value = f'attr {{ key: "value" value {{ tensor {{ dtype: {dtype} tensor_shape {{ {shape} }} }} }} }}'
    return node(name, "Const", device=device, dtype=dtype, extra=value)


def place(
    *nodes: str, gpus: int = 2, soft: bool = True, notes: dict[str, NodeNotes] | None = None, name: str = "world"
) -> Placement:
    """Place nodes as a session's graph on one CPU and some GPUs."""
    graph = parse_text("\n".join(nodes))
    program = Program(name, "graph", graph, soft_placement=soft, notes={"": notes or {}})
    return place_program(program, local_devices([("CPU", 1), ("GPU", gpus)]), shipped())


def places(placement: Placement) -> dict[str, str]:
    """Return where each node went, in short."""
    return {n.name: placement.devices.by_name[n.device].short for n in placement.nodes}
