"""Build the bodies of functions that the placer inspects."""

from __future__ import annotations

from simplace.graph.graph import freeze_graph
from simplace.graph.node_def import FuncRef
from simplace.kernels.registry import KernelTable
from simplace.lowering.op_signatures import Signatures
from simplace.placement.inspecting_placer import CalledBody
from simplace.program.program import Program


class Bodies:
    """Build the bodies of a program's functions."""

    def __init__(self, program: Program, table: KernelTable) -> None:
        self._signatures = Signatures(table, program.graph.library)

    def __call__(self, call: FuncRef) -> CalledBody:
        """Return a function's body, its own resource calls isolated."""
        # A graph without such calls must not wait for the import of what builds functions.
        from simplace.lowering.function_body import instantiate_function
        from simplace.lowering.isolate_placer_inspection_required_ops_pass import isolate_calls

        body = instantiate_function(self._signatures.function(call, call.name), call.attrs, self._signatures)
        isolate_calls(body.graph, self._signatures)
        graph = freeze_graph(body.graph)
        arguments = tuple(graph.ids[node.name] for node in body.args)
        return CalledBody(graph, arguments, tuple(graph.ids[node.name] for node in body.results))
