"""One run inside the child, from the emulated devices to the last event."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from simplace.kernels import capture
from simplace.oracle import messages
from simplace.oracle.inside import devices, files, script, uncalled
from simplace.oracle.inside.calls import CallLimit, FunctionCalls, Stopped
from simplace.oracle.inside.clusters import Clusters
from simplace.oracle.inside.eager_ops import EagerExecution
from simplace.oracle.inside.functions import Functions
from simplace.oracle.inside.partition_graphs import PartitionGraphs
from simplace.oracle.inside.python_facts import PythonFacts
from simplace.oracle.inside.recorder import LogFile, Recorder
from simplace.oracle.inside.sessions import SessionRuns
from simplace.oracle.inside.source_lines import SourceLines
from simplace.oracle.messages import Request


def run(request: Request) -> bool:
    """Run the request's target; say whether it was stopped before its end."""
    directory = Path(request.directory)
    recorder = Recorder(directory)
    recorder.event("started", tensorflow=tf.version.VERSION)
    _write_registry(request.registry)
    if request.machine.has_gpus and not tf.sysconfig.get_build_info().get("is_cuda_build"):
        recorder.remark("This build of TensorFlow has no GPU kernels, so its own placement on GPUs is not that of one.")
    lines = SourceLines(request.target)
    gpus = devices.prepare(request.machine, request.plugin)
    devices.fix_soft_placement(request.options.soft_placement)
    log = LogFile(directory / messages.LOG)
    limit = CallLimit(request.options.max_calls, recorder, lines)
    functions = Functions(recorder, lines)
    clusters = Clusters(request, recorder)
    cuts = PartitionGraphs(recorder, log, request.options.partitions)
    cuts.prepare()
    calls = FunctionCalls(functions, recorder, log, limit, gpus, cuts, clusters, request)
    eager = EagerExecution(calls, gpus.emulated)
    sessions = SessionRuns(functions, recorder, log, limit, gpus, cuts, clusters, lines, request)
    for watcher in (clusters, functions, eager, sessions):
        watcher.watch()
    lines.watch_autograph()
    lines.watch_device_scopes()
    PythonFacts(recorder, lines).watch()
    try:
        failure = _run_target(request, recorder, lines, limit)
    finally:
        _end(request, recorder, eager)
    if failure is not None:
        recorder.event("failure", **failure)
    return limit.has_stopped


def _run_target(request: Request, recorder: Recorder, lines: SourceLines, limit: CallLimit) -> dict[str, Any] | None:
    try:
        if request.mode == "graph":
            files.place_graph(request.target, request.options)
        elif request.mode == "saved_model":
            files.call_saved_model(request.target, request.options)
        else:
            _run_script(request, recorder)
    except BaseException as error:
        # The program is a guest: whatever ends it, also SystemExit and KeyboardInterrupt, must not lose the answer.
        return _failure(error, request, recorder, lines, limit)
    return None


def _run_script(request: Request, recorder: Recorder) -> None:
    module = script.new_main(request.target, request.arguments)
    try:
        script.run(module)
    except Stopped:
        pass
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    uncalled.call_all(vars(module), request.options.function, recorder)


def _failure(
    error: BaseException, request: Request, recorder: Recorder, lines: SourceLines, limit: CallLimit
) -> dict[str, Any] | None:
    if recorder.is_refusal(error):
        if request.mode == "script":
            recorder.remark("The program ended there, since it does not handle the refusal.")
        return None
    if isinstance(error, tf.errors.OutOfRangeError) and limit.has_ended_input:
        return None
    return script.failure_of(error, lines)


def _end(request: Request, recorder: Recorder, eager: EagerExecution) -> None:
    recorder.event("devices", devices=devices.of_context(request.machine))
    recorder.event("ended", eager_ops=eager.ops)


def _write_registry(path: str) -> None:
    if not path or os.path.exists(path):
        return
    partial = f"{path}.{os.getpid()}"
    capture.write(partial)
    os.replace(partial, path)
