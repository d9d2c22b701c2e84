"""Ask TensorFlow's Grappler how it optimizes a placed graph for devices that need not be there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from simplace.oracle.launch import ask_child
from simplace.oracle.scratch import scratch_folder

_TIMEOUT = 600.0  # seconds


def optimize_graph_def(
    graph: bytes,
    kept: Sequence[str],
    resources: Mapping[str, bytes],
    devices: Sequence[Mapping[str, object]],
    rewriter: bytes,
) -> bytes:
    """Return a serialized GraphDef as Grappler leaves it, with the shape of each output as "_output_shapes".

    `kept` names the nodes that must stay, `devices` have the fields of `DeviceProperties` and a name, `resources` has
    the type and shape of the variables among the arguments, each as a serialized NodeDef of a VarHandleOp, `rewriter`
    is a serialized RewriterConfig. Raises `ProgramError` where TensorFlow is not there or fails.
    """
    with scratch_folder() as folder:
        files = {name: Path(folder) / name for name in ("request.json", "graph.pb", "optimized.pb")}
        files["graph.pb"].write_bytes(graph)
        request = {
            "graph": str(files["graph.pb"]),
            "optimized": str(files["optimized.pb"]),
            "kept": list(kept),
            "resources": {name: made.hex() for name, made in resources.items()},
            "devices": list(devices),
            "rewriter": rewriter.hex(),
        }
        files["request.json"].write_text(json.dumps(request), encoding="utf-8")
        ask_child(
            "simplace.oracle.child.grappler",
            files["request.json"],
            _TIMEOUT,
            slow=f"Grappler did not optimize the graph within {_TIMEOUT:g} s",
            failed="Grappler could not optimize the graph",
        )
        return files["optimized.pb"].read_bytes()
