"""Compare simplace's prepared graphs with TensorFlow's own placer inputs, node by node."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from simplace.devices.device_name import LOCAL_TASK
from simplace.devices.device_set import DeviceSet, local_devices
from simplace.graph.graph import Graph
from simplace.graph.graph_def import from_message
from simplace.graph.protos import message_class
from simplace.graph.tensor_id import parse_tensor_name
from simplace.kernels.registry import KernelTable
from simplace.lowering.prepare_graph import prepare_graph
from simplace.placement.called_bodies import Bodies
from simplace.placement.placer import place_graph
from simplace.program.program import Program

HERE = Path(__file__).parent
DEVICES: DeviceSet = local_devices([("CPU", 3)])


def run_cases(cases: Path, out: Path, wanted: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run the cases of a file under TensorFlow; return what child.py wrote."""
    command = [sys.executable, str(HERE / "child.py"), str(cases), str(out), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=1800)
    if not out.exists():
        raise AssertionError(f"the TensorFlow child failed ({done.returncode}): {done.stderr[-2000:]}")
    return pickle.loads(out.read_bytes())


def program_of(record: dict[str, Any]) -> Program:
    """Make the program that the importer would make of a record."""
    message = message_class("GraphDef").FromString(record["graph"])
    return Program(
        name=record["case"],
        kind="session" if record["function"] is None else "function",
        graph=from_message(message),
        function=record["function"],
        arg_devices=tuple(record["arg_devices"]),
        kept_devices=record.get("kept_devices", {}),
    )


def prepared(record: dict[str, Any], table: KernelTable) -> Graph:
    """Prepare the program of a record as simplace does."""
    return prepare_graph(program_of(record), table, DEVICES, record["target"])


def differences(record: dict[str, Any], table: KernelTable, limit: int = 10) -> list[str]:
    """List where the prepared graph differs from TensorFlow's placer input; [] if nowhere."""
    graph = prepared(record, table)
    ours = [_our_line(graph, i) for i in range(2, len(graph))]
    theirs = [_their_line(node) for node in message_class("GraphDef").FromString(record["placer_input"]).node]
    found = []
    for i in range(max(len(ours), len(theirs))):
        mine = ours[i] if i < len(ours) else "nothing"
        tf = theirs[i] if i < len(theirs) else "nothing"
        if mine != tf:
            found.append(f"node {i}:\n  simplace   {mine}\n  TensorFlow {tf}")
        if len(found) == limit:
            break
    return found


def misplaced(record: dict[str, Any], table: KernelTable) -> list[str]:
    """List the nodes that do not end where TensorFlow put them; the order of edges shows in nothing else."""
    program = program_of(record)
    graph = prepared(record, table)
    default = DEVICES.find(record["target"]) if record["target"] else None
    bodies = Bodies(program, table)
    ours = place_graph(program, graph, DEVICES, table, default=default, soft_placement=True, bodies=bodies)
    theirs = {node.name: node.device for node in message_class("GraphDef").FromString(record["placer_output"]).node}
    if ours.refusal is not None:
        return [ours.refusal.message]
    return [
        f"{name}: {ours.device(i)}, TensorFlow {theirs[name]}"
        for i, name in enumerate(graph.names)
        if i > 1 and ours.device(i) != theirs[name]
    ]


def _our_line(graph: Graph, i: int) -> str:
    texts = graph.input_names(i)
    device = graph.assigned[i] or graph.requested[i]
    return _line(graph.names[i], graph.ops[i], device, graph.attrs[i].get("_class"), texts)


def _their_line(node: Any) -> str:
    groups: Any = None
    if "_class" in node.attr:
        value = node.attr["_class"]
        groups = tuple(value.list.s) if value.HasField("list") else value.s
    return _line(node.name, node.op, node.device, groups, node.input)


def _line(name: str, op: str, device: str, groups: Any, inputs: Any) -> str:
    data = [parse_tensor_name(text) for text in inputs if not text.startswith("^")]
    control = sorted({text for text in inputs if text.startswith("^")})
    return f"{name} = {op}{data}{control} @{device.replace(LOCAL_TASK, '')} {groups}"


def main() -> None:
    """Print a line per graph: python -m tests.lowering.differential CASES.py [case ...]."""
    with tempfile.TemporaryDirectory() as folder:
        result = run_cases(Path(sys.argv[1]), Path(folder) / "out.pickle", tuple(sys.argv[2:]))
    table = KernelTable.shipped()
    for record in result["records"]:
        found = differences(record, table) or (misplaced(record, table) if record["placer_output"] else [])
        title = f"{record['case']} {record['function'] or 'session'}"
        print(title, "differs" if found else "same", *(f"\n  {line}" for line in found))
    for case, failure in result["failures"].items():
        print(case, failure)


if __name__ == "__main__":
    main()
