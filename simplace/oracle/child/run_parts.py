"""What is made once for a run, and is passed together to those who observe calls and sessions."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.oracle.child.call_limit import CallLimit
from simplace.oracle.child.clusters import Clusters
from simplace.oracle.child.context_devices import ContextDevices
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.partition_graphs import PartitionGraphs
from simplace.oracle.child.reached_functions import ReachedFunctions
from simplace.oracle.child.recorder import LogFile, Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.xla_functions import AutomaticJit
from simplace.oracle.protocol import Request


@dataclass(frozen=True, slots=True)
class RunParts:
    """Record of the parts of one run."""

    request: Request
    recorder: Recorder
    log: LogFile
    lines: SourceLines
    limit: CallLimit
    functions: Functions
    clusters: Clusters
    partitionings: PartitionGraphs
    reached: ReachedFunctions
    devices: ContextDevices
    jit: AutomaticJit
