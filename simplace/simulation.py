"""The whole flow on one screen: prepare a program's graph as TensorFlow does, then place it."""

from __future__ import annotations

from simplace.call_device import call_device
from simplace.devices import Device, DeviceSet
from simplace.graph.build import GraphBuilder
from simplace.graph.collector import paused_collector
from simplace.graph.model import freeze
from simplace.graph.node_def import FuncRef
from simplace.importers.program import Program
from simplace.kernels.table import KernelTable
from simplace.lowering.body import instantiate
from simplace.lowering.isolation import isolate_calls
from simplace.lowering.prepare import prepare
from simplace.lowering.signatures import Signatures
from simplace.placement.inspection import CalledBody
from simplace.placement.placement import Placement
from simplace.placement.placer import place, refused_placement
from simplace.refusal import Refused


def simulate(
    program: Program, devices: DeviceSet, table: KernelTable, *, soft_placement: bool | None = None
) -> Placement:
    """Place a program on a set of devices with the kernels of a table.

    `soft_placement` overrides what the program set. A placement that TensorFlow would refuse comes back as such.
    """
    soft = program.soft_placement if soft_placement is None else soft_placement
    with paused_collector():
        return _simulate(program.with_soft_placement(soft), devices, table)


def _simulate(program: Program, devices: DeviceSet, table: KernelTable) -> Placement:
    soft = program.soft_placement
    default: Device | None = None
    try:
        if program.function is not None:
            default = call_device(program.scope, devices, soft)
        graph = prepare(program, table, devices, default.name if default else None)
    except Refused as refused:
        empty = freeze(GraphBuilder(Signatures(table, {})))
        return refused_placement(program, empty, devices, table, default, refused.refusal)
    bodies = Bodies(program, table)
    return place(program, graph, devices, table, default=default, soft_placement=soft, bodies=bodies)


class Bodies:
    """Build the bodies of functions that the placer must look into."""

    def __init__(self, program: Program, table: KernelTable) -> None:
        self._signatures = Signatures(table, program.graph.library)

    def __call__(self, call: FuncRef) -> CalledBody:
        """Return a function's body, its own resource calls isolated."""
        body = instantiate(self._signatures.function(call, call.name), call.attrs, self._signatures)
        isolate_calls(body.graph, self._signatures)
        graph = freeze(body.graph)
        arguments = tuple(graph.ids[node.name] for node in body.args)
        return CalledBody(graph, arguments, tuple(graph.ids[node.name] for node in body.results))
