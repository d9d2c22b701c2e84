"""The subgraphs that TensorFlow partitions a placed graph into, as `graph_partition.cc` dumps them to files.

With TF_CPP_VMODULE=graph_partition=2 TensorFlow dumps the subgraph of each device right after partitioning, before any
optimization, and logs the name of each file after the line that ends it (util/dump_graph.cc). Grappler would change
the graph between placement and partitioning, so a run that collects these graphs turns it off where functions are
placed. A master partitions a session's graph by task, and each worker its part by device, all of them in this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import tensorflow as tf

from simplace.oracle.child.devices import for_each_context
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import LogFile, Recorder, logged_threads
from simplace.oracle.child.tf_private import atomic_function, context, rewriter_config_pb2
from simplace.oracle.placement_log import read_thread

Run = dict[str, Any]  # the fields of a `SessionRun`

_CONFIG = "config_proto"
_WITHOUT_GRAPPLER = "disable_meta_optimizer"
_CUT = re.compile(r"graph_partition\.cc:\d+\] Added send/recv: ")
_DUMPED = re.compile(r"dump_graph\.cc:\d+\] Dumped Graph to (?P<path>.*)$")
_PLACE = re.compile(r"/partition_(?P<name>[^/]+?)_\d+(?:_\d+)?\.\w+$")  # then an address, and how often it was so


class PartitionGraphs:
    """Find the subgraphs of the graph that a call or a session's run has just placed and partitioned."""

    def __init__(self, recorder: Recorder, log: LogFile, wanted: bool) -> None:
        self._recorder = recorder
        self._log = log
        self.wanted = wanted
        self._is_off = False  # by the program itself
        self._restored: dict[bytes, bytes] = {}

    def prepare(self) -> None:
        """Turn Grappler off for functions, whatever the program sets, if subgraphs are wanted at all.

        A call in a graph keeps the program's options: what it calls is partitioned when the graph runs.
        """
        if not self.wanted:
            return
        patch_method(context.Context, "set_optimizer_experimental_options", self._setting_options)
        patch_method(atomic_function, "make_call_op_in_graph", self._make_with_grappler)
        for_each_context(lambda each: each.set_optimizer_experimental_options({}))

    def restore_grappler(self, attrs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the attributes of a function's call with Grappler as the program has it: what it prunes never runs."""
        named = zip(attrs[::2], attrs[1::2], strict=True)
        restored = ((name, self._restore(value) if name == _CONFIG else value) for name, value in named)
        return tuple(chain.from_iterable(restored))

    def _make_with_grappler(self, make: Any) -> Any:
        def make_restored(function: Any, inputs: Any, options: Mapping[str, Any]) -> Any:
            return make(function, inputs, {**options, _CONFIG: self._restore(options[_CONFIG])})

        return make_restored

    def _restore(self, config: bytes) -> bytes:
        if config not in self._restored:
            restored = tf.compat.v1.ConfigProto.FromString(config)
            restored.graph_options.rewrite_options.disable_meta_optimizer = self._is_off
            self._restored[config] = restored.SerializeToString(deterministic=True)
        return self._restored[config]

    def _setting_options(self, set_options: Any) -> Any:
        def set_without_grappler(context_: Any, options: dict[str, Any]) -> None:
            self._is_off = options.get(_WITHOUT_GRAPPLER, self._is_off)
            self._restored.clear()
            set_options(context_, {**options, _WITHOUT_GRAPPLER: True})

        return set_without_grappler

    def describe_grappler(self, session: Any = None) -> dict[str, Any]:
        """Return what the program set of Grappler for functions, or for a session, and whether it is on."""
        given = context.context().config if session is None else session._config
        rewriting = deepcopy(given.graph_options.rewrite_options)
        if session is not None:
            is_off = session._simplace_is_unoptimized
        else:
            is_off = self._is_off if self.wanted else rewriting.disable_meta_optimizer
        rewriting.ClearField(_WITHOUT_GRAPPLER)
        return {
            "rewriter": rewriting.SerializeToString(deterministic=True).hex(),
            "has_grappler": not is_off,
            "inlines_later": not is_off and rewriting.function_optimization != rewriter_config_pb2.RewriterConfig.OFF,
        }

    def without_grappler(self, session_config: Any, *, is_default: bool) -> bool:
        """Turn Grappler off in the configuration of a session, if subgraphs are wanted at all.

        Return whether the program has turned it off, for the session or, where its configuration is the default, by the
        options of the context.
        """
        rewriting = session_config.graph_options.rewrite_options
        is_off = self._is_off if is_default and self.wanted else rewriting.disable_meta_optimizer
        if self.wanted:
            rewriting.disable_meta_optimizer = True
        return bool(is_off)

    def record(self, program: int, start: int, run: Run | None = None, thread: int | None = None) -> None:
        """Record the first partitioning that a thread did since position `start` of the log, if it did one.

        `program` is the number of the program, `run` describes the run of a session. Later partitionings are those of
        functions that it calls. `thread` is as the log has it, None for the calling one.
        """
        if self.wanted:
            files = list(self._first_cut(start, logged_threads() if thread is None else {thread, None}))
            self._write(program, files, run)

    def record_of_master(self, program: int, start: int, run: Run) -> None:
        """Record the first partitionings by the workers of the parts that a master sent since position `start`.

        A worker runs nothing before all have their parts, so that those of functions come later.
        """
        if self.wanted:
            self._write(program, list(self._cuts_of_workers(start).values()), run)

    def _write(self, program: int, files: list[str], run: Run | None) -> None:
        if files:
            self._recorder.event("partition", program=program, graphs=files, run=run)

    def _cuts_of_workers(self, start: int) -> dict[str, str]:
        """Map each device to the file of its subgraph; TensorFlow names both the devices and the tasks in files.

        Each task partitions its part once, on a thread of its own; what is partitioned after that is a function.
        """
        found: dict[str, str] = {}
        tasks, cuts = 0, 0
        is_of_part: dict[int | None, bool] = {}  # what a thread dumps now
        for line in self._log.lines_since(start):
            if _CUT.search(line):
                cuts += tasks > 0
                is_of_part[read_thread(line)] = 0 < cuts <= tasks
            dumped = _DUMPED.search(line)
            place = _PLACE.search(dumped["path"]) if dumped else None
            if not dumped or not place:
                continue
            if "_device:" not in place["name"]:
                tasks += 1
            elif is_of_part.get(read_thread(line)):
                found.setdefault(place["name"], os.path.basename(dumped["path"]))
        return found

    def _first_cut(self, start: int, mine: Collection[int | None]) -> Iterator[str]:
        inside = False
        for line in self._log.lines_since(start):
            if read_thread(line) not in mine:
                continue
            dumped = _DUMPED.search(line)
            if _CUT.search(line):
                if inside:
                    return
                inside = True
            elif inside and dumped:
                yield os.path.basename(dumped["path"])
