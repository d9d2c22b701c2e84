"""Sessions that only partition: beside each session of the program that runs itself, one without Grappler.

Grappler would change the graph between placement and partitioning, and what a run computes may differ without it, if
only in the last digits. So the program's session runs as the program has it, and the subgraphs are those that the other
one makes of the same runs; it starts none.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from simplace.oracle.child.boundary import wrap_foreign
from simplace.oracle.child.partition_graphs import Run
from simplace.oracle.child.patches import find_original
from simplace.oracle.child.tf_private import config_pb2
from simplace.oracle.child.tf_private import pywrap_tf_session as tf_session
from simplace.oracle.child.tf_private import session as session_module


class CutSessions:
    """The sessions that partition: made when first needed."""

    def __init__(self) -> None:
        base = session_module.BaseSession
        self._create = find_original(base, "__init__")
        self._extend = find_original(base, "_extend_graph")

    def prepare(self, session: Any, run: Run) -> None:
        """Make TensorFlow partition what a run of a session needs, and run nothing.

        A partial run begins as soon as it is prepared, so these are left out.
        """
        if run["by_rendezvous"]:
            return
        second = self._find(session)
        self._extend(second)
        options = config_pb2.CallableOptions(feed=run["feeds"], fetch=run["fetches"], target=run["targets"])
        options.feed_devices.update(run.get("feed_devices", ()))
        options.fetch_devices.update(run.get("fetch_devices", ()))
        for source, target in run.get("connections", ()):
            options.tensor_connection.add(from_tensor=source, to_tensor=target)
        make_callable(second, options)

    def _find(self, session: Any) -> Any:
        if not hasattr(session, "_simplace_second"):
            made = session._simplace_second = object.__new__(session_module.BaseSession)
            made._simplace_is_second = True
            made._session = None
            self._create(made, "", session.graph, _without_grappler(session))
        return session._simplace_second


def make_callable(session: Any, options: Any) -> None:
    """Make TensorFlow prepare a callable of a session, and release it."""
    buffer = tf_session.TF_NewBufferFromString(options.SerializeToString())
    try:
        handle = wrap_foreign(tf_session.TF_SessionMakeCallable)(session._session, buffer)
        tf_session.TF_SessionReleaseCallable(session._session, handle)
    finally:
        tf_session.TF_DeleteBuffer(buffer)


def _without_grappler(session: Any) -> Any:
    """Return a session's configuration without Grappler; constants are folded where the run is computed."""
    made = tf.compat.v1.ConfigProto()
    made.CopyFrom(session._config)
    made.log_device_placement = False
    made.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    made.graph_options.rewrite_options.disable_meta_optimizer = True
    return made
