"""Small worlds in text form: ops with their kernels, devices, functions, and a graph to place among them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from simplace.devices.device_set import Device, DeviceSet, make_device
from simplace.graph import dtypes
from simplace.graph.graph import Graph, freeze_graph
from simplace.graph.graph_text import build_graph, parse_lines
from simplace.graph.node_def import ArgDef, FunctionDef, GraphDef
from simplace.graph.verify import verify_graph
from simplace.kernels.extra import parse_extra
from simplace.kernels.registry import KernelTable
from simplace.lowering.isolate_placer_inspection_required_ops_pass import isolate_calls
from simplace.lowering.op_signatures import Signatures
from simplace.placement.called_bodies import Bodies
from simplace.placement.placement import Placement
from simplace.placement.placer import place_graph
from simplace.program.program import Program

_OP = re.compile(r"(?P<name>\w+)\((?P<inputs>.*?)\)(?: -> (?P<outputs>.*?))?(?: \| (?P<attrs>.*?))?(?: on (?P<on>.*))?")
_FUNCTION = re.compile(r"(?P<name>\w+)\((?P<inputs>[^)]*)\) -> (?P<outputs>.*)")
_KINDS = {"C": "FakeCPU", "G": "FakeGPU", "X": "XLA_CPU"}


def op_table(text: str, kinds: dict[str, str] | None = None) -> KernelTable:
    """Read ops a line each, such as `Foo(x: T) -> y: T | T: type = DT_FLOAT; N: int = 1 on C:2 G`.

    After `on` come the device types with a kernel, each with its priority; `kinds` says what the letters mean.
    """
    kinds = _KINDS if kinds is None else kinds
    ops: list[dict[str, Any]] = []
    kernels: list[dict[str, Any]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _OP.fullmatch(line)
        assert found is not None, f"an op looks like `Foo(x: float) -> y: float on C G`, not {line!r}"
        ops.append(
            {
                "name": found["name"],
                "inputs": _split(found["inputs"], ","),
                "outputs": _split(found["outputs"], ","),
                "attrs": _split(found["attrs"], ";"),
            }
        )
        for word in (found["on"] or "").split():
            kind, _, priority = word.partition(":")
            kernels.append({"op": found["name"], "device": kinds.get(kind, kind), "priority": int(priority or 0)})
    return parse_extra({"op": ops, "kernel": kernels}, "the test's ops")


def function(signature: str, nodes: str, **ret: str) -> FunctionDef:
    """Make a function of `Name(x: float) -> y: float`, its nodes, and for each output the tensor it returns."""
    found = _FUNCTION.fullmatch(signature)
    assert found is not None, f"a function looks like `F(x: float) -> y: float`, not {signature!r}"
    written = tuple(line.node for line in parse_lines(nodes))
    return FunctionDef(found["name"], _args(found["inputs"]), _args(found["outputs"]), written, ret, {}, (), {}, {})


@dataclass(frozen=True)
class World:
    """Record of ops, devices and functions; `place` asks for the placement of a graph in text form."""

    table: KernelTable
    devices: DeviceSet
    library: dict[str, FunctionDef] = field(default_factory=dict)

    @property
    def signatures(self) -> Signatures:
        return Signatures(self.table, self.library)

    def graph(self, text: str) -> Graph:
        """Read a graph and isolate its calls as TensorFlow does before placing."""
        builder = build_graph(text, self.signatures)
        isolate_calls(builder, self.signatures)
        graph = freeze_graph(builder)
        verify_graph(graph)
        return graph

    def place(
        self, text: str | Graph, *, soft: bool = True, default: str = "", function: str | None = None
    ) -> Placement:
        """Place a graph; `default` is the full name of the default device, "" for a session without one."""
        graph = self.graph(text) if isinstance(text, str) else text
        program = Program("case", "session", GraphDef((), self.library), function, soft_placement=soft)
        chosen: Device | None = self.devices.by_name[default] if default else None
        bodies = Bodies(program, self.table)
        return place_graph(program, graph, self.devices, self.table, default=chosen, soft_placement=soft, bodies=bodies)


def answer(placement: Placement) -> dict[str, str]:
    """Map node names to devices without what all of them share, such as "FakeCPU:0"."""
    names = [d.name.rpartition("/")[0] for d in placement.devices]
    shared = names[0] + "/device:" if len(set(names)) == 1 else ""
    return {node.name: node.device.removeprefix(shared) for node in placement.nodes}


def answers(text: str) -> dict[str, str]:
    """Read an expected answer such as `a b = FakeCPU:0; c = FakeGPU:0`."""
    found = {}
    for part in _split(text, ";"):
        nodes, _, place = part.partition(" = ")
        for node in nodes.split():
            found[node] = place.strip()
    return found


def device_set(text: str, priorities: dict[str, int]) -> DeviceSet:
    """Make the devices of a text with one full name a word."""
    return DeviceSet((make_device(name) for name in text.split()), priorities)


def _split(text: str | None, mark: str) -> list[str]:
    return [part.strip() for part in (text or "").split(mark) if part.strip()]


def _args(text: str) -> tuple[ArgDef, ...]:
    pairs = (part.split(":") for part in _split(text, ","))
    return tuple(ArgDef(name.strip(), dtypes.parse_dtype(kind)) for name, kind in pairs)
