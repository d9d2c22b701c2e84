"""One request answered inside the child: what is to run, its steps, and what was made up for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format

from simplace.measure.child import called, probes, runnable, steps
from simplace.measure.child.runnable import CannotRunError, Runnable


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the request's target; write the graph that ran to the request's `graph`."""
    values: dict[str, Any] = {"tensorflow": tf.version.VERSION}
    try:
        name, found = _found(request)
    except CannotRunError as reason:
        return {**values, "refused": str(reason)}
    Path(request["graph"]).write_bytes(found.definition.SerializeToString())
    settings = [(inter_op, intra_op) for inter_op, intra_op in request["settings"]]
    gauge = probes.gauge() if request["probes"] else None
    count = request["steps"]
    made, targets = steps.run(found, settings, request["cpus"], request["warm_up"], count, gauge, held=count + 1)
    return {
        **values,
        "name": name,
        "remarks": found.remarks,
        "settings": made,
        "targets": targets,
        "probes": probes.run(request["warm_up"], count) if request["probes"] else {},
    }


def _found(request: dict[str, Any]) -> tuple[str, Runnable]:
    path = request["path"]
    if request["kind"] == "graph":
        return Path(path).stem, runnable.of_graph(_read(Path(path)), request["batch"])
    if request["kind"] == "saved_model":
        call, remarks = called.of_saved_model(path, request["function"], request["batch"])
        nothing = "this SavedModel has no signature" + (f" {request['function']}" if request["function"] else "")
    else:
        call, remarks = called.of_script(path, request["arguments"], request["function"])
        nothing = f"the program called no tf.function{' ' + request['function'] if request['function'] else ''}"
    if call is None:
        raise CannotRunError(f"{nothing}, so there is nothing to run")
    found = runnable.of_call(call)
    return call.name, Runnable(found.definition, found.variables, remarks + found.remarks)


def _read(path: Path) -> Any:
    definition = tf.compat.v1.GraphDef()
    if path.suffix == ".pbtxt":
        text_format.Parse(path.read_text(encoding="utf-8"), definition)
    else:
        definition.ParseFromString(path.read_bytes())
    return definition
