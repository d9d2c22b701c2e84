"""One run inside the child, from the emulated devices to the last event."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from simplace.oracle import protocol
from simplace.oracle.child import (
    capture,
    devices,
    files,
    patches,
    replaced_sources,
    script,
    tf_names,
    tf_private,
    uncalled_functions,
)
from simplace.oracle.child.boundary import is_own
from simplace.oracle.child.call_limit import CallLimit, Stopped
from simplace.oracle.child.clusters import Clusters
from simplace.oracle.child.compiler_ir import compile_for_host
from simplace.oracle.child.context_devices import ContextDevices
from simplace.oracle.child.custom_devices import CustomDevices
from simplace.oracle.child.dataset_feeds import DatasetFeeds
from simplace.oracle.child.dataset_functions import DatasetFunctions
from simplace.oracle.child.dataset_makers import DatasetMakers
from simplace.oracle.child.dataset_twins import DatasetTwins
from simplace.oracle.child.eager_log import EagerLog
from simplace.oracle.child.eager_ops import DatasetParts, EagerExecution
from simplace.oracle.child.error_stacks import leave_out_own_frames
from simplace.oracle.child.function_calls import FunctionCalls
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.layer_makers import LayerMakers
from simplace.oracle.child.layer_scopes import watch_layer_scopes
from simplace.oracle.child.mesh_functions import MeshFunctions
from simplace.oracle.child.partition_graphs import PartitionGraphs
from simplace.oracle.child.python_facts import PythonFacts
from simplace.oracle.child.reached_functions import ReachedFunctions
from simplace.oracle.child.recorder import LogFile, Recorder, text_of
from simplace.oracle.child.refused_settings import RefusedSettings
from simplace.oracle.child.run_parts import RunParts
from simplace.oracle.child.sessions import SessionRuns
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.unexecuted import UnexecutedCalls
from simplace.oracle.child.users_environment import pass_on_users_environment, show_users_environment
from simplace.oracle.child.warning_lines import skip_own_frames
from simplace.oracle.child.xla_functions import AutomaticJit, ignore_jit
from simplace.oracle.protocol import Request

_MOST = 10_000  # characters of an error


def run_request(request: Request) -> int:
    """Run the request's target, to the end of its last thread; return the exit status."""
    directory = Path(request.directory)
    show_users_environment()
    recorder = Recorder(directory)
    needed = (tf_names.PLACEMENTS, tf_names.SESSIONS) if request.mode == "graph" else (tf_names.PLACEMENTS,)
    if missing := tf_private.describe_missing(*needed):
        recorder.event("failure", how="internal", text=missing)
        return 1
    recorder.event("started", tensorflow=tf.version.VERSION)
    if missing := tf_private.describe_missing(*tf_names.OPTIONAL):
        recorder.remark(missing)
    _write_registry(request.registry)
    if request.machine.has_gpus and not tf.sysconfig.get_build_info().get("is_cuda_build"):
        recorder.remark("This build of TensorFlow has no GPU kernels: it may place ops differently than a GPU build.")
    if request.mode == "script":
        pass_on_users_environment()
        skip_own_frames()
        patches.report_own_errors(lambda error: script.report_own_error(error, recorder))
    lines = SourceLines(request.target)
    devices.prepare_devices(request.machine, request.plugin)
    devices.fix_soft_placement(request.options.soft_placement)
    jit = AutomaticJit(recorder, lines)
    if request.options.jit:
        jit.watch()
    else:
        ignore_jit()
    log = LogFile(directory / protocol.LOG)
    limit = CallLimit(request.options.calls, recorder, lines)
    functions = Functions(recorder, lines)
    clusters = Clusters(request, recorder)
    partitionings = PartitionGraphs(recorder, log, request.options.partitions)
    if tf_private.is_complete(tf_names.SUBGRAPHS):
        partitionings.prepare()
    kind_of_calls = FunctionCalls if request.mode == "script" else UnexecutedCalls
    reached = ReachedFunctions(recorder, lines)
    seen = ContextDevices(recorder, request.machine)
    parts = RunParts(request, recorder, log, lines, limit, functions, clusters, partitionings, reached, seen, jit)
    calls = kind_of_calls(parts)
    is_watched = request.mode == "script" and tf_private.is_complete(tf_names.EAGER_OPS)
    eager_log = EagerLog(recorder, log, lines, seen) if is_watched else None
    twins = DatasetTwins(functions, calls.inner, calls.copy_for_datasets)
    datasets = DatasetParts(DatasetFunctions(functions, recorder, lines, calls), DatasetFeeds(recorder), twins)
    custom = CustomDevices(MeshFunctions(parts, calls))
    custom.watch()
    eager = EagerExecution(calls, datasets, custom, eager_log, emulate=bool(request.plugin))
    if tf_private.is_complete(tf_names.CLUSTERS):
        clusters.watch()
    functions.watch()
    calls.watch()
    watch_layer_scopes()
    eager.watch()
    if request.plugin and tf_private.is_complete(tf_names.LOWERING):
        compile_for_host(recorder)
    if tf_private.is_complete(tf_names.SESSIONS):
        SessionRuns(parts).watch()
    if tf_private.is_complete(tf_names.DEFINITIONS):
        reached.watch()
    if tf_private.is_complete(tf_names.LINES):
        lines.watch(directory)
        leave_out_own_frames()
    if tf_private.is_complete(tf_names.DATASETS):
        DatasetMakers(recorder, lines).watch()
    if tf_private.is_complete(tf_names.FACTS):
        PythonFacts(recorder, lines).watch()
        LayerMakers(recorder, lines).watch()
        RefusedSettings(recorder, lines).watch()
    threading.excepthook = lambda thread: script.tell_of_thread(thread, lines, recorder)
    failure = _run_target(request, recorder, lines, limit, reached)
    if failure is not None:
        recorder.event("failure", **failure)
    if not limit.has_stopped:
        with suppress(Stopped):
            threading._shutdown()  # type: ignore[attr-defined]  # the program's own threads go on after its last line
    atexit._run_exitfuncs()
    limit.report()
    datasets.functions.report()
    datasets.feeds.report()
    if eager_log is not None:
        eager_log.report()
    if found := _describe_last_devices(request):
        recorder.event("devices", devices=found)
    reached.report_end()
    recorder.event("ended", eager_ops=eager.ops, is_stopped=limit.has_stopped)
    return 0 if failure is None else int(failure.get("status", 1))


def _run_target(
    request: Request, recorder: Recorder, lines: SourceLines, limit: CallLimit, reached: ReachedFunctions
) -> dict[str, Any] | None:
    try:
        if request.mode == "graph":
            files.place_graph(request.target, request.options)
        elif request.mode == "saved_model":
            files.call_saved_model(request.target, request.options)
        else:
            _run_script(request, recorder, reached)
    except BaseException as error:
        # Whatever ends the program, SystemExit and KeyboardInterrupt included, the answer must be written.
        return _describe_failure(script.call_excepthook(error), request, recorder, lines, limit)
    return None


def _run_script(request: Request, recorder: Recorder, reached: ReachedFunctions) -> None:
    replaced_sources.replace_sources(request.options.sources)
    module = script.new_main(request.target, request.arguments)
    try:
        script.run_script(module)
    except Stopped:
        pass
    except SystemExit as end:
        if script.ending_of(end)[0]:
            raise
    uncalled_functions.call_all(vars(module), request.options.function, recorder, reached)


def _describe_failure(
    error: BaseException, request: Request, recorder: Recorder, lines: SourceLines, limit: CallLimit
) -> dict[str, Any] | None:
    recorder.uncaught(error)
    if recorder.is_refusal(error):
        if request.mode == "script":
            recorder.remark("The program ended at the refusal, since it does not handle it.")
        return None
    if isinstance(error, tf.errors.OutOfRangeError) and limit.has_ended_input:
        limit.tell_end(script.line_of(error, lines))
        return None
    if isinstance(error, files.NotImportedError):
        return {"how": "refused", "text": str(error)}
    failure = script.failure_of(error, lines)
    if failure is not None and failure["how"] == "raised":
        recorder.event(
            "python", fact="raised", at=script.line_of(error, lines), values={"error": text_of(error)[:_MOST]}
        )
        failure["line"] = "; ".join(filter(None, (failure["line"], limit.explain_values())))
    return failure


def _describe_last_devices(request: Request) -> list[dict[str, str]]:
    """Describe the devices at the program's end: none where its settings keep TensorFlow from making them."""
    try:
        return devices.describe_context(request.machine)
    except Exception as error:
        if is_own(error):
            raise
        return []


def _write_registry(path: str) -> None:
    if not path or os.path.exists(path):
        return
    partial = f"{path}.{os.getpid()}"
    capture.write_kernel_table(partial)
    os.replace(partial, path)
