"""Ask TensorFlow's Grappler how it optimizes a placed graph for devices that need not be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from simplace.errors import ProgramError
from simplace.oracle.launch import SEARCHED
from simplace.oracle.orphan import run_group
from simplace.oracle.scratch import scratch_folder

_TIMEOUT = 600.0  # seconds


def optimize_graph_def(
    graph: bytes, kept: Sequence[str], resources: Mapping[str, bytes], devices: Sequence[Mapping[str, object]]
) -> bytes:
    """Return a serialized GraphDef as Grappler leaves it, with the shape of each output as "_output_shapes".

    `kept` names the nodes that must stay, `devices` have the fields of `DeviceProperties` and a name, `resources` has
    the type and shape of the variables among the arguments, each as a serialized NodeDef of a VarHandleOp. Raises
    `ProgramError` where TensorFlow is not there or fails.
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
        }
        files["request.json"].write_text(json.dumps(request), encoding="utf-8")
        _run_child(str(files["request.json"]))
        return files["optimized.pb"].read_bytes()


def _run_child(request: str) -> None:
    start = (
        "import sys; sys.path[0] = sys.argv[1]; from simplace.oracle.child.grappler import main; main(*sys.argv[2:])"
    )
    try:
        done = run_group([sys.executable, "-c", start, SEARCHED, request, str(os.getpid())], os.environ, _TIMEOUT)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"Grappler did not optimize the graph within {_TIMEOUT:g} s") from None
    if done.returncode:
        last = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise ProgramError(
            f"Grappler could not optimize the graph: {last[-1] if last else 'it said nothing'}", done.stderr
        )
