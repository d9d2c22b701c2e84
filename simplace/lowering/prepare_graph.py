"""Convert a program's graph to the form that TensorFlow passes to its placer.

Mirrors `OptimizeFunctionGraph` of tensorflow/core/common_runtime/optimize_function_graph_utils.cc for function calls,
`GraphExecutionState` (graph_execution_state.cc) for sessions, and the pre-placement passes that matter to both.
"""

from __future__ import annotations

from simplace.devices.device_set import DeviceSet
from simplace.graph.graph import Graph
from simplace.graph.input_columns import InputColumns
from simplace.graph.op_kinds import CASES, IFS, REPLACED, WHILES
from simplace.kernels.registry import KernelTable
from simplace.lowering.graph_constructor import construct_finished
from simplace.lowering.op_signatures import Signatures
from simplace.program.program import Program

_REWRITTEN = IFS | CASES | WHILES | REPLACED


def prepare_graph(
    program: Program, table: KernelTable, devices: DeviceSet, target: str | None, inputs: InputColumns | None = None
) -> Graph:
    """Return the graph that the placer sees: nodes by id, edges in the order of their creation.

    `target` is the full name of the device that a function is called on, None for a session. `inputs` is what the
    inputs of the graph's nodes name, where that has been looked up. Raises `UnknownOpError` for an op that neither the
    table nor the library knows, `TargetError` for a graph that is not valid and `Refused` for a result whose device
    TensorFlow would refuse.
    """
    signatures = Signatures(table, program.graph.library)
    is_plain = program.function is None and not (program.kept_devices or program.pruned_to or program.pins)
    if is_plain and not _is_rewritten(program, signatures):
        return construct_finished(program.graph.nodes, signatures, inputs)
    from simplace.lowering.lower_program import lower_program  # a plain graph must not wait for the import of passes

    return lower_program(program, signatures, devices, target)


def _is_rewritten(program: Program, signatures: Signatures) -> bool:
    """Return whether the graph has an op that any of the passes is for."""
    ops = {node.op for node in program.graph.nodes}
    return not _REWRITTEN.isdisjoint(ops) or any(map(signatures.is_call, ops))
