"""One request answered inside the child: what is to run, its steps, and its placeholder values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format

from simplace.measure.child import called, cpu_probes, probes, runnable, steps
from simplace.measure.child.called import CannotRunError, ProgramEndedError
from simplace.measure.child.runnable import Runnable
from simplace.oracle.child import tf_names, tf_private


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """Run the request's target; write the graph that ran to the request's `graph`."""
    values: dict[str, Any] = {"tensorflow": tf.version.VERSION}
    if missing := tf_private.describe_missing(tf_names.STEPS):
        return {**values, "refused": missing}
    try:
        name, found = _find_runnable(request)
    except CannotRunError as reason:
        return {**values, "refused": str(reason)}
    except ProgramEndedError as end:
        return {**values, "failure": end.failure}
    Path(request["graph"]).write_bytes(found.definition.SerializeToString())
    settings = [(inter_op, intra_op) for inter_op, intra_op in request["settings"]]
    gauges = probes.build_gauges() if request["probes"] else ()
    count = request["steps"]
    made, targets = steps.run_steps(found, settings, request["cpus"], request["warm_up"], count, gauges, held=count + 1)
    return {
        **values,
        "name": name,
        "remarks": found.remarks,
        "settings": made,
        "targets": targets,
        "probes": probes.run_probes(request["warm_up"], count) if request["probes"] else {},
        "cpu": cpu_probes.measure_cpu() if request["calibrates"] else None,
    }


def _find_runnable(request: dict[str, Any]) -> tuple[str, Runnable]:
    path = request["path"]
    if request["kind"] == "graph":
        return Path(path).stem, runnable.make_graph_runnable(_read_graph(Path(path)), request["batch"])
    if request["kind"] == "saved_model":
        call, remarks = called.find_signature_call(path, request["function"], request["batch"])
        nothing = "this SavedModel has no signature" + (f" {request['function']}" if request["function"] else "")
    else:
        call, remarks = called.find_script_call(path, request["arguments"], request["function"])
        nothing = f"the program called no tf.function{' ' + request['function'] if request['function'] else ''}"
    if call is None:
        raise CannotRunError(f"{nothing}, so there is nothing to run")
    found = runnable.make_call_runnable(call)
    return call.name, Runnable(found.definition, found.variables, remarks + found.remarks)


def _read_graph(path: Path) -> Any:
    definition = tf.compat.v1.GraphDef()
    if path.suffix == ".pbtxt":
        text_format.Parse(path.read_text(encoding="utf-8"), definition)
    else:
        definition.ParseFromString(path.read_bytes())
    return definition
