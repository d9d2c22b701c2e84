"""The kinds of ops that TensorFlow treats by name: Node::IsSwitch() and its siblings, as sets and as predicates.

Mirrors `Node::GetNodeClassForOp` of tensorflow/core/graph/graph.cc (and the predicates of graph.h). Each predicate is
the look-up in its set itself, so that a loop over a large graph pays for no Python call.

>>> is_switch("RefSwitch"), is_switch("Merge"), is_control_flow("Merge")
(True, False, True)
"""

from __future__ import annotations


def _with_ref(*ops: str) -> frozenset[str]:
    """Add to each op its form for reference types (REF_CLASS)."""
    return frozenset(ops) | {f"Ref{op}" for op in ops}


SWITCHES = _with_ref("Switch", "_SwitchN")
MERGES = _with_ref("Merge") | {"_XlaMerge"}
ENTERS = _with_ref("Enter")
EXITS = _with_ref("Exit")
NEXT_ITERATIONS = _with_ref("NextIteration")
CONTROL_FLOW = SWITCHES | MERGES | ENTERS | EXITS | NEXT_ITERATIONS
LOOP_COND = "LoopCond"
SENDS = frozenset({"_Send", "_HostSend"})
RECVS = frozenset({"_Recv", "_HostRecv"})
CONSTANTS = frozenset({"Const", "HostConst"})
VARIABLES = frozenset({"Variable", "VariableV2"})  # those that hand out references; a resource has a handle
VARIABLE_HANDLE = "VarHandleOp"
IDENTITIES = _with_ref("Identity")
METADATA = frozenset({"Size", "Shape", "Rank"})
PARTITIONED_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
MUST_COMPILE = "_XlaMustCompile"  # the attribute of functions, and of calls, that XLA compiles whole
NO_INLINE = "_noinline"  # that of functions whose calls stay in the graph
IMPLEMENTS = "api_implements"  # that of functions which may stand in for each other
PREFERRED_DEVICE = "api_preferred_device"  # and the type of device for which one does
INTS_ON_DEVICE = "experimental_ints_on_device"  # that of functions whose int32 are in the memory of their device
SYMBOLIC_GRADIENT = "SymbolicGradient"
IFS = frozenset({"If", "StatelessIf"})
CASES = frozenset({"Case", "StatelessCase"})
WHILES = frozenset({"While", "StatelessWhile"})
FUNCTIONAL = IFS | CASES | WHILES  # control flow that calls functions
ARGS = frozenset({"_Arg", "_DeviceArg"})
RETVALS = frozenset({"_Retval", "_DeviceRetval"})
CALLS_OF_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})  # numpy_function, py_function
ACCUMULATE_N = "AccumulateNV2"
PARALLEL_CONCAT = "ParallelConcat"
REPLACED = frozenset({ACCUMULATE_N, PARALLEL_CONCAT})  # by other ops, before a graph is placed
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})  # tensorflow/core/graph/subgraph.cc
BATCH_DEQUEUES = frozenset(  # what takes as many elements from a queue, or a reader, as it is told
    "QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 ReaderReadUpTo ReaderReadUpToV2".split()
)
TAKING_ELEMENTS = ("IteratorGetNext", "QueueDequeue", "ReaderRead")  # what the names of ops that take one begin with
READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
ASSIGNMENTS = frozenset({"Assign", "AssignVariableOp"})
_WRITES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter", "Apply", "SparseApply", "Scatter", "Assign")
_NOT_WRITES = frozenset({"ScatterNd", "AssignVariableXlaConcatND"})

# What hands tensors on, or names where they are: none of the work that a program is for.
DATAFLOW_ONLY = frozenset({"NoOp", "IdentityN", VARIABLE_HANDLE, LOOP_COND}).union(
    ARGS, RETVALS, CONSTANTS, IDENTITIES, CONTROL_FLOW, PARTITIONED_CALLS, PLACEHOLDERS
)

# The inputs of a collective's second version that hold (group size, group key, instance key); the first has attributes.
COLLECTIVE_KEY_INPUTS = {
    "CollectiveReduceV2": (1, 2, 3),
    "CollectiveGatherV2": (1, 2, 3),
    "CollectiveReduceScatterV2": (1, 2, 3),
    "CollectiveAllToAllV2": (1, 2, 3),
    "CollectiveBcastSendV2": (1, 2, 3),
    "CollectiveBcastRecvV2": (0, 1, 2),
}

is_switch = SWITCHES.__contains__
is_merge = MERGES.__contains__
is_enter = ENTERS.__contains__
is_exit = EXITS.__contains__
is_next_iteration = NEXT_ITERATIONS.__contains__
is_control_flow = CONTROL_FLOW.__contains__
is_loop_cond = LOOP_COND.__eq__
is_send = SENDS.__contains__
is_constant = CONSTANTS.__contains__
is_variable = VARIABLES.__contains__
is_identity = IDENTITIES.__contains__
is_metadata = METADATA.__contains__
is_partitioned_call = PARTITIONED_CALLS.__contains__
is_if = IFS.__contains__
is_case = CASES.__contains__
is_while = WHILES.__contains__
is_arg = ARGS.__contains__
is_retval = RETVALS.__contains__
is_placeholder = PLACEHOLDERS.__contains__


def is_write(op: str) -> bool:
    """Return whether an op writes the variable that is its first input.

    >>> is_write("AssignSubVariableOp"), is_write("ScatterNd")
    (True, False)
    """
    return op.startswith(_WRITES) and op not in _NOT_WRITES
