"""Which ops the executor takes to be expensive, so that they may go to another thread.

Mirrors the overrides of `IsExpensive` in tensorflow/core/kernels and `KernelStats` in
tensorflow/core/common_runtime/executor.cc. Kernels on a GPU are never expensive: they only launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from simplace.graph.op_kinds import (
    ARGS,
    CASES,
    CONSTANTS,
    CONTROL_FLOW,
    IDENTITIES,
    IFS,
    LOOP_COND,
    METADATA,
    PARTITIONED_CALLS,
    RECVS,
    RETVALS,
    SYMBOLIC_GRADIENT,
    VARIABLE_HANDLE,
    WHILES,
)

INITIAL_CYCLES = 1e8
EXPENSIVE_CYCLES = 8000.0
_KEPT = 9  # of ten parts of the moving average
_SAMPLED = 16  # one run in 16 of an op that has become cheap is still measured

_NEVER = frozenset(
    "_HostConst ImmutableConst GuaranteeConst NoOp ControlTrigger IdentityN StopGradient PreventGradient "
    "PlaceholderWithDefault Reshape ShapeN Squeeze ExpandDims EnsureShape RefSelect _ReadVariablesOp "
    "VarIsInitializedOp BroadcastGradientArgs BroadcastArgs ConcatOffset ConsumeMutexLock MutexV2 SummaryWriter "
    "StackPush StackPushV2 StackPop StackPopV2 StackClose StackCloseV2 BatchFunction".split()
).union(CONSTANTS, IDENTITIES, METADATA, CONTROL_FLOW, [LOOP_COND], ARGS, RETVALS)

# Ops whose CPU kernel is an AsyncOpKernel: ExecutorState::ProcessAsync does not update their estimate.
ASYNCHRONOUS = frozenset(
    "RemoteCall For Batch Unbatch UnbatchGrad MapDefun ReduceDataset "
    "MakeIterator IteratorGetNext IteratorGetNextAsOptional IteratorGetModelProto DeleteIterator OneShotIterator "
    "MultiDeviceIteratorGetNextFromShard DatasetToSingleElement DatasetToTFRecord ExperimentalDatasetToTFRecord "
    "GetElementAtIndex SaveDataset SaveDatasetV2 InitializeTableFromDataset "
    "QueueEnqueue QueueEnqueueV2 QueueEnqueueMany QueueEnqueueManyV2 QueueDequeue QueueDequeueV2 QueueDequeueMany "
    "QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 QueueClose QueueCloseV2 QueueSize QueueSizeV2 "
    "QueueIsClosed QueueIsClosedV2 "
    "BarrierInsertMany BarrierTakeMany BarrierClose BarrierIncompleteSize BarrierReadySize "
    "AccumulatorTakeGradient SparseAccumulatorTakeGradient ResourceAccumulatorTakeGradient "
    "ReaderRead ReaderReadV2 ReaderReadUpTo ReaderReadUpToV2 MutexLock "
    "CropAndResize CropAndResizeGradImage CropAndResizeGradBoxes "
    "CollectiveGather CollectiveReduce CollectiveBcastSend CollectiveBcastRecv CollectiveReduceV2 CollectiveGatherV2 "
    "CollectiveBcastSendV2 CollectiveBcastRecvV2 CollectiveReduceV3 CollectiveAllToAllV2 CollectiveAllToAllV3 "
    "CollectiveReduceScatterV2 CollectiveInitializeCommunicator".split()
).union(PARTITIONED_CALLS, IFS, CASES, WHILES, RECVS, [SYMBOLIC_GRADIENT])

# VarHandleOp's output is known before the step (OpKernel::const_tensor): the executor takes it without running the
# kernel, but in a step that is traced. Const is one of these too, but never expensive.
_NEVER_MEASURED = ASYNCHRONOUS | {VARIABLE_HANDLE}


def can_be_expensive(op: str, device_type: str) -> bool:
    """Return whether an op's kernel counts as expensive until measured otherwise.

    >>> can_be_expensive("MatMul", "CPU"), can_be_expensive("MatMul", "GPU"), can_be_expensive("Reshape", "CPU")
    (True, False, False)
    """
    return device_type == "CPU" and op not in _NEVER


def settled_cycles(op: str, cycles: float) -> float:
    """Return where the moving average of an op ends whose kernel takes some cycles; what is not measured stays.

    >>> settled_cycles("MatMul", 5e6), settled_cycles("VarHandleOp", 100.0), settled_cycles("While", 100.0)
    (5000000.0, 100000000.0, 100000000.0)
    """
    return INITIAL_CYCLES if op in _NEVER_MEASURED else cycles


class CostAverages:
    """Keep the moving average of each node's cost in cycles, over steps.

    `cycles` has what a node's kernel takes each time, or what the average is at its first run of a step, at its second
    and so on, where that was observed: several numbers. The last one holds for all later runs.
    """

    def __init__(
        self, ops: Sequence[str], cycles: Sequence[Sequence[float]], can_be: list[bool], *, is_warm: bool
    ) -> None:
        self._cycles = [settled_cycles(op, costs[0]) for op, costs in zip(ops, cycles, strict=True)]
        self._observed = {node: costs for node, costs in enumerate(cycles) if len(costs) > 1}
        self._can_be = can_be
        self._average = list(self._cycles) if is_warm else [INITIAL_CYCLES] * len(cycles)
        self._runs = [0] * len(cycles)
        self._ready = dict.fromkeys(self._observed, 0)  # times, in this step

    def start_step(self) -> None:
        """Begin a step, in which no node has been ready yet."""
        self._ready = dict.fromkeys(self._observed, 0)

    def decide(self, node: int) -> bool:
        """Return whether a node that is ready now is expensive. Called once for each of its runs, in their order."""
        if not self._can_be[node]:
            return False
        averages = self._observed.get(node)
        if averages is None:
            return self._average[node] > EXPENSIVE_CYCLES
        turn, self._ready[node] = self._ready[node], self._ready[node] + 1
        return averages[min(turn, len(averages) - 1)] > EXPENSIVE_CYCLES

    def ran(self, node: int) -> None:
        """Record one run of a node."""
        if not self._can_be[node]:
            return
        self._runs[node] += 1
        if self._average[node] <= EXPENSIVE_CYCLES and self._runs[node] % _SAMPLED:
            return
        self._average[node] = (_KEPT * self._average[node] + self._cycles[node]) / (_KEPT + 1)
