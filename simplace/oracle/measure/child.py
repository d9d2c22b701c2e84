"""Run a graph file under TensorFlow with tracing, and write down when each node ran: a process of its own.

The only argument is a JSON request; see `simplace.oracle.measure.measure`. TensorFlow's rewrites are off, so that
the nodes that run are those of the file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(request_file: str) -> int:
    """Run the request; return the exit status."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not request["onednn"]:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import tensorflow as tf

    v1 = tf.compat.v1
    graph_def = v1.GraphDef()
    data = Path(request["graph"]).read_bytes()
    if request["graph"].endswith(".pbtxt"):
        from google.protobuf import text_format

        text_format.Parse(data.decode(), graph_def)
    else:
        graph_def.ParseFromString(data)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with v1.Session(graph=graph, config=_config(v1, request)) as session:
        steps = _run(v1, session, graph, request)
    Path(request["answer"]).write_text(json.dumps({"tensorflow": tf.__version__, "steps": steps}), encoding="utf-8")
    return 0


def _config(v1: Any, request: dict[str, Any]) -> Any:
    from tensorflow.core.protobuf import rewriter_config_pb2

    config = v1.ConfigProto(
        inter_op_parallelism_threads=request["inter_op"],
        intra_op_parallelism_threads=request["intra_op"],
        device_count={"CPU": request["cpus"]},
        allow_soft_placement=True,
    )
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    off = rewriter_config_pb2.RewriterConfig.OFF
    config.graph_options.rewrite_options.constant_folding = off
    return config


def _run(v1: Any, session: Any, graph: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    last = [op for op in graph.get_operations() if _is_last(op)]
    options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
    for _ in range(request["warm_up"]):
        session.run(last)
    steps = []
    for _ in range(request["steps"]):
        metadata = v1.RunMetadata()
        session.run(last, options=options, run_metadata=metadata)
        steps.append(_events(metadata))
    return steps


def _is_last(op: Any) -> bool:
    is_used = any(out.consumers() for out in op.outputs) or bool(op._control_outputs)
    return not is_used and not op.type.startswith("Placeholder")


def _events(metadata: Any) -> dict[str, Any]:
    """List [node, kernel start, kernel end, start, end] in nanoseconds, by start."""
    events = []
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            start = node.all_start_nanos
            ends = (node.op_start_rel_nanos, node.op_end_rel_nanos, 0, node.all_end_rel_nanos)
            events.append([node.node_name, *(start + one for one in ends)])
    events.sort(key=lambda event: event[3])
    return {"events": events}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
