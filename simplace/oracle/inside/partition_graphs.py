"""The graphs that TensorFlow cuts a placed graph into, as `graph_partition.cc` writes them to files when asked to.

With TF_CPP_VMODULE=graph_partition=2 TensorFlow dumps the subgraph of each device right after the cut, before anything
optimises it, and logs the name of each file after the line that ends the cut (util/dump_graph.cc). Grappler would
change the graph between placement and cut, so a run that collects these graphs turns it off.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.inside.recorder import LogFile, Recorder, logged_thread

_WITHOUT_GRAPPLER = "disable_meta_optimizer"
_CUT = re.compile(r"[\w./-]*\bgraph_partition\.cc:\d+\] Added send/recv: ")
_DUMPED = re.compile(r"[\w./-]*\bdump_graph\.cc:\d+\] Dumped Graph to (?P<path>.*)$")
_THREAD = re.compile(r"^[IWEF]\d{4} \S+ +(?P<thread>\d+) ")


class PartitionGraphs:
    """Find the subgraphs of the graph that a call or a session's run has just placed and cut."""

    def __init__(self, recorder: Recorder, log: LogFile, wanted: bool) -> None:
        self._recorder = recorder
        self._log = log
        self._wanted = wanted

    def prepare(self) -> None:
        """Turn Grappler off for functions, if subgraphs are wanted at all."""
        if self._wanted:
            tf.config.optimizer.set_experimental_options({_WITHOUT_GRAPPLER: True})

    def without_grappler(self, session_config: Any) -> None:
        """Turn Grappler off in the configuration of a session, if subgraphs are wanted at all."""
        if self._wanted:
            session_config.graph_options.rewrite_options.disable_meta_optimizer = True

    def record(self, program: int, start: int, run: Sequence[list[str]] = ()) -> None:
        """Write down the first cut that the calling thread made since position `start` of the log, if it made one.

        `program` is the number of the program that was cut, `run` names the feeds, fetches and targets of a session's
        run. Later cuts are those of functions that it calls.
        """
        files = list(self._first_cut(start)) if self._wanted else []
        if files:
            self._recorder.event("partition", program=program, graphs=files, run=run)

    def _first_cut(self, start: int) -> Iterator[str]:
        inside = False
        mine = str(logged_thread())
        for line in self._log.lines_since(start):
            thread = _THREAD.match(line)
            if thread and thread["thread"] != mine:
                continue
            dumped = _DUMPED.search(line)
            if _CUT.search(line):
                if inside:
                    return
                inside = True
            elif inside and dumped:
                yield os.path.basename(dumped["path"])
