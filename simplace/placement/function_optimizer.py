"""Which calls Grappler inlines once a graph is placed, so that no kernel of theirs instantiates the function.

Mirrors `InlineFunctionCalls` of tensorflow/core/grappler/optimizers/function_optimizer.cc: what it puts in the place of
the call it places anew, without a line of the log. It has to know that all that the function does besides computing its
results still happens, and that each result comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from simplace.graph.algorithm import reverse_reachable
from simplace.graph.node_def import FunctionDef
from simplace.graph.op_kinds import IMPLEMENTS, MERGES, NO_INLINE, SWITCHES, is_retval
from simplace.kernels.registry import KernelTable
from simplace.placement.implementation_selector import LEAST_NODES
from simplace.placement.placement import Placement
from simplace.program.needed_nodes import find_needed

_SINK = 1
# Stateful ops that need not run where nothing takes their results (`IsExemptFromSideEffectsExecutionValidation`).
_WITHOUT_EFFECT = frozenset("""
    CollectiveGather CollectiveReduce CollectiveBcastSend CollectiveBcastRecv CollectiveBcastSendV2
    CollectiveBcastRecvV2 NcclAllReduce Send Recv CollectiveAssignGroupsV2 CollectiveInitializeCommunicator
    RandomUniform RandomUniformInt RandomStandardNormal ParameterizedTruncatedNormal TruncatedNormal RandomShuffle
    Multinomial RandomGamma RandomGammaGrad RandomPoisson RandomPoissonV2
    ReadVariableOp CudnnRNN CudnnRNNBackprop CudnnRNNV2 CudnnRNNV3 CudnnRNNBackpropV2 CudnnRNNBackpropV3
    EnqueueTPUEmbeddingSparseBatch EnqueueTPUEmbeddingIntegerBatch EnqueueTPUEmbeddingSparseTensorBatch
    EnqueueTPUEmbeddingRaggedTensorBatch EnqueueTPUEmbeddingArbitraryTensorBatch
    DynamicEnqueueTPUEmbeddingArbitraryTensorBatch SaveV2 RestoreV2 InfeedEnqueue InfeedEnqueueTuple
""".split())  # fmt: skip


def inlines_call(placement: Placement, node: int, function: FunctionDef) -> bool:
    """Return whether Grappler inlines a call in a placed graph, a PartitionedCall that XLA does not compile.

    In what is inlined itself, Grappler inlines whatever the size. A call that nothing needs it leaves out.
    """
    program, graph = placement.program, placement.graph
    is_inlined = program.caller is not None and program.caller.is_inlined
    if not program.inlines_later or (len(graph.op_ids) < LEAST_NODES and not is_inlined):
        return False
    if IMPLEMENTS in function.attrs or function.attrs.get(NO_INLINE) is True:
        return False
    if not (_is_run(placement, node) if program.kind == "session" else _is_taken(placement, node)):
        return False
    has_control = any(map(graph.is_control, graph.out_edges[node]))
    return _keeps_effects(function, placement.groups.support.table, has_control) and _gives_results(function)


def _is_run(placement: Placement, node: int) -> bool:
    """Return whether some run of a session needs a node."""
    return any(node in find_needed(placement.graph, one.run) for one in placement.program.runs)


def _is_taken(placement: Placement, node: int) -> bool:
    """Return whether a result of a function, or an effect, depends on a node: Grappler prunes others first."""
    graph, table = placement.graph, placement.groups.support.table
    found = reverse_reachable([node], lambda each: [graph.edge_dst[edge] for edge in graph.out_edges[each]])
    return any(is_retval(graph.ops[each]) or table.is_stateful(graph.ops[each]) for each in found if each > _SINK)


def _keeps_effects(function: FunctionDef, table: KernelTable, has_control: bool) -> bool:
    """Return whether all that has effects in a function runs for the control outputs (ValidateSideEffectsExecution)."""
    effects = {node.name for node in function.nodes if table.is_stateful(node.op) and node.op not in _WITHOUT_EFFECT}
    return not effects or (has_control and effects <= _reach_back(function, set(function.control_ret.values())))


def _gives_results(function: FunctionDef) -> bool:
    """Return whether no result comes from a Switch without a Merge between (ValidateNoDeadOutputs)."""
    results = {name for each in function.ret.values() for name in _name_nodes((each,))}
    merges = {node.name for node in function.nodes if node.op in MERGES}
    switches = {node.name for node in function.nodes if node.op in SWITCHES}
    return switches.isdisjoint(_reach_back(function, results, merges))


def _reach_back(function: FunctionDef, ends: Set[str], stops: Set[str] = frozenset()) -> set[str]:
    inputs = {node.name: () if node.name in stops else node.inputs for node in function.nodes}
    return reverse_reachable(ends, lambda name: _name_nodes(inputs.get(name, ())))


def _name_nodes(tensors: tuple[str, ...]) -> Iterator[str]:
    return (each.removeprefix("^").partition(":")[0] for each in tensors)
