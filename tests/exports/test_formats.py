"""Every format, read by what it is for."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from copy import copy
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import networkx as nx
import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.cli import main
from simplace.errors import DrawingError, SimplaceError
from simplace.exports import placed_graph_def
from simplace.exports.formats import FORMATS, Export, choose_format, write_format
from simplace.exports.viewer_scopes import find_scopes
from simplace.graph import graph_def
from simplace.graph.graph import Graph
from simplace.result import Placed, Result
from simplace.views.figures.device_colours import device_colours
from tests.exports import readers
from tests.exports.hostile import NAMES
from tests.worlds import CPU, GPU0, GPU1, constant, node, place

WORLD = (
    constant("a", (3, 3), device="/CPU:0"),
    node("dense/mm", "MatMul", "a", "a", device="/GPU:1"),
    node("dense/sum", "AddV2", "dense/mm", "dense/mm", "^a"),
)
DEVICES = {"a": CPU, "dense/mm": GPU1, "dense/sum": GPU0}
_OUTPUT = {"id": "0", "attrs": [{"key": "type", "value": "float32 [3,3]"}]}
ONE = [each for each in FORMATS if each.of_one]


def export(placement):
    placed = Placed(placement)
    result = Result("world.pb", "2.21.0", "", placement.devices, (placed,))
    return Export(
        result, placed, device_colours(placement.devices), lambda one: schedule_placement(one.placement), 1.5e9
    )


def data(name, placement=None):
    return write_format(export(placement or place(*WORLD)), choose_format("x", name))


def renamed(placement, names):
    """Rename the nodes of a placement to names which no GraphDef reader would let through."""
    graph = placement.graph
    fields = {field: getattr(graph, field) for field in Graph.__dataclass_fields__}
    groups = copy(placement.groups)
    groups.graph = Graph(**{**fields, "names": [*graph.names[:2], *names]})
    return replace(placement, groups=groups)


def hostile():
    nodes = [node(f"n{i}", "Neg", "a") for i in range(len(NAMES) - 1)]
    return renamed(place(constant("a", (2, 3)), *nodes), list(NAMES))


def test_names_and_endings_are_unique():
    assert len({form.name for form in FORMATS}) == len(FORMATS)
    endings = [ending for form in FORMATS for ending in form.endings]
    assert not [(a, b) for a in endings for b in endings if a != b and a.endswith(b)]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_same_input_gives_the_same_bytes(form):
    assert write_format(export(place(*WORLD)), form) == write_format(export(place(*WORLD)), form)


@pytest.mark.parametrize("form", ONE, ids=lambda form: form.name)
def test_a_refused_placement_is_not_exported(form):
    refused = place(constant("a", (2,)), node("x", "AsString", "a", device="/GPU:0"), soft=False)
    with pytest.raises(SimplaceError, match="refuses to place this graph, so there is nothing to export"):
        write_format(export(refused), form)


def test_an_unknown_format_or_ending_is_refused():
    with pytest.raises(DrawingError, match="'svg' is not a format; the formats are chrome-trace, graph-def"):
        choose_format("x", "svg")
    with pytest.raises(DrawingError, match=r"x\.json: no known file extension; end the name in \.graph\.json"):
        choose_format("x.json", None)


@pytest.mark.parametrize("name", ["graph-def", "graph-def-text"])
def test_a_graph_def_reads_back_with_devices(name):
    read = (graph_def.parse_graph_def if name == "graph-def" else lambda text: graph_def.parse_text(text.decode()))(
        data(name)
    )
    assert {each.name: each.device for each in read.nodes} == DEVICES
    by_name = {each.name: each for each in read.nodes}
    assert by_name["dense/sum"].inputs == ("dense/mm", "dense/mm", "^a")
    assert by_name["dense/mm"].attrs["_simplace_requested"] == b"/GPU:1"
    assert by_name["dense/mm"].attrs["_simplace_because"] == b"It requested /GPU:1 and got GPU:1."
    original = dict(zip(place(*WORLD).graph.names, place(*WORLD).graph.attrs, strict=True))
    for each in read.nodes:
        kept = {key: value for key, value in each.attrs.items() if not key.startswith("_simplace")}
        assert kept == {key: value for key, value in original[each.name].items() if value is not None}


def test_the_text_has_a_field_a_line():
    lines = data("graph-def-text").decode().splitlines()
    assert '  name: "dense/mm"' in lines
    assert f'  device: "{GPU1}"' in lines


def test_networkx_reads_the_graphml():
    graph = nx.read_graphml(BytesIO(data("graphml")), force_multigraph=True)
    assert dict(graph.nodes(data="device")) == DEVICES
    assert graph.nodes["dense/mm"]["because"] == "It requested /GPU:1 and got GPU:1."
    assert graph.number_of_edges("dense/mm", "dense/sum") == 2


def test_model_explorer_s_graph():
    (graph,) = json.loads(data("model-explorer"))["graphs"]
    nodes = {each["id"]: each for each in graph["nodes"]}
    assert nodes["dense/mm"]["namespace"] == "dense"
    assert nodes["dense/mm"]["label"] == "mm (GPU:1)"
    assert {"key": "device", "value": "GPU:1"} in nodes["dense/mm"]["attrs"]
    assert nodes["a"]["outputsMetadata"] == [_OUTPUT]
    assert len({each["style"]["backgroundColor"] for each in nodes.values()}) == 3
    (overlay,) = graph["tasksData"]["edgeOverlaysDataListLeftPane"]
    edges = {(e["sourceNodeId"], e["targetNodeId"], e["label"]) for e in overlay["overlays"][0]["edges"]}
    assert edges == {("a", "dense/mm", "CPU:0 to GPU:1"), ("dense/mm", "dense/sum", "GPU:1 to GPU:0")}


def test_arguments_variables_and_results_have_scopes_of_their_own_in_viewers():
    """A resource is a variable; a scope of the program's own name is not joined."""
    index = 'attr { key: "index" value { i: 0 } }'
    made = place(
        node("x", "_Arg", extra=index),
        node("w", "_Arg", dtype="DT_RESOURCE", extra=index),
        node("results/mm", "MatMul", "x", "x"),
        node(
            "y", "_Retval", "results/mm", extra=f'{index} attr {{ key: "_class" value {{ list {{ s: "loc:@x" }} }} }}'
        ),
    )
    assert find_scopes(made.graph) == ["", "", "arguments", "variables", "results", "results_1"]
    (graph,) = json.loads(data("model-explorer", made))["graphs"]
    shown = {each["id"]: (each["namespace"], each["label"].split()[0]) for each in graph["nodes"]}
    assert shown == {
        "x": ("arguments", "x"), "w": ("variables", "w"), "results/mm": ("results", "mm"), "y": ("results_1", "y"),
    }  # fmt: skip
    (read,) = [
        graph_def.parse_graph_def(event.graph_def)
        for event in readers.read("x.tfevents", data("tensorboard", made))
        if event.graph_def
    ]
    assert {each.name: each.inputs for each in read.nodes} == {
        "arguments/x": (), "variables/w": (), "results/mm": ("arguments/x", "arguments/x"),
        "results_1/y": ("results/mm",),
    }  # fmt: skip
    assert {each.name: each.attrs["_class"] for each in read.nodes if "_class" in each.attrs} == {
        "results_1/y": (b"loc:@arguments/x",),
    }  # fmt: skip


def test_model_explorer_s_node_data_is_text():
    (one,) = json.loads(data("model-explorer-data")).values()
    assert {name: each["value"] for name, each in one["results"].items()} == {
        "a": "CPU:0", "dense/mm": "GPU:1", "dense/sum": "GPU:0",
    }  # fmt: skip


def test_model_explorer_s_own_classes_take_the_graph():
    builder = pytest.importorskip("model_explorer.graph_builder", reason="pip install ai-edge-model-explorer")
    dacite = pytest.importorskip("dacite")
    read = json.loads(data("model-explorer", hostile()))
    for graph in read["graphs"]:
        made = dacite.from_dict(builder.Graph, graph, config=dacite.Config(strict=True))
        assert [each.id for each in made.nodes] == list(NAMES)


@pytest.mark.parametrize("placement", [lambda: place(*WORLD), hostile], ids=["plain", "hostile"])
def test_tensorboard_reads_the_event_file(placement, tmp_path):
    from tensorboard.backend.event_processing import event_file_loader as loader

    made = placement()
    (tmp_path / "events.out.tfevents.1.simplace").write_bytes(data("tensorboard", made))
    events = list(loader.LegacyEventFileLoader(str(tmp_path / "events.out.tfevents.1.simplace")).Load())
    assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def", "tagged_run_metadata"]
    read = graph_def.parse_graph_def(events[1].graph_def)
    assert [each.name for each in read.nodes] == made.graph.names[2:]
    assert {each.device for each in read.nodes} == {decision.device for decision in made.decisions.values()}
    assert events[2].tagged_run_metadata.tag == "simplace_simulated"


def test_the_step_times_are_those_of_the_schedule():
    from tensorboard.compat.proto.config_pb2 import RunMetadata

    from simplace.exports.event_file import _run_metadata

    placement = place(*WORLD)
    simulated = schedule_placement(placement)
    stats = RunMetadata.FromString(_run_metadata(placement, simulated, placement.graph.names)).step_stats.dev_stats
    timed = {(each.device, one.node_name) for each in stats for one in each.node_stats}
    assert timed <= {(device, name) for name, device in DEVICES.items()}
    assert {name for _, name in timed} >= {"dense/mm", "dense/sum"}
    ends = [one.all_start_micros * 1000 + one.all_end_rel_micros * 1000 for each in stats for one in each.node_stats]
    assert max(ends) <= simulated.trace.makespan + 2000
    assert all(one.all_end_rel_micros > 0 for each in stats for one in each.node_stats)


@pytest.mark.parametrize(("name", "file"), [("graph-def", "x.pb"), ("graph-def-text", "x.pbtxt"),
                                            ("tensorboard", "events.out.tfevents.1.simplace")])  # fmt: skip
def test_netron_reads_it(name, file, tmp_path):
    netron, javascript = importlib.util.find_spec("netron"), shutil.which("node")
    if netron is None or javascript is None:
        pytest.skip("Netron's parser needs node, and: pip install netron")
    (tmp_path / file).write_bytes(data(name))
    reader = Path(__file__).with_name("netron.mjs")
    command = [javascript, str(reader), str(Path(netron.origin).parent), str(tmp_path / file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {each: device for each, _, device in json.loads(done.stdout)} == DEVICES


@pytest.mark.tf
def test_tensorflow_imports_the_graph_def():
    import tensorflow as tf

    message = tf.compat.v1.GraphDef.FromString(data("graph-def"))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
    assert {op.name: op.device for op in graph.get_operations()} == DEVICES


def numbers(name, *values):
    listed = " ".join(f"int_val: {value}" for value in values)
    shape = f"tensor_shape {{ dim {{ size: {len(values)} }} }}" if len(values) > 1 else "tensor_shape { }"
    value = f'attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 {shape} {listed} }} }} }}'
    return node(name, "Const", dtype="DT_INT32", extra=value)


@pytest.mark.tf
def test_shape_inference_reads_the_constants_of_an_exported_graph():
    import tensorflow as tf

    two = 'attr { key: "N" value { i: 2 } } attr { key: "Tidx" value { type: DT_INT32 } }'
    kind = 'attr { key: "Tshape" value { type: DT_INT32 } }'
    placement = place(
        constant("x", (2, 6)), constant("large", (64, 64)), numbers("shape", 3, 4), numbers("axis", 1),
        node("reshaped", "Reshape", "x", "shape", extra=kind),
        node("joined", "ConcatV2", "reshaped", "reshaped", "axis", extra=two),
    )  # fmt: skip
    message = tf.compat.v1.GraphDef.FromString(placed_graph_def.write_binary(placement))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
    assert graph.get_tensor_by_name("joined:0").shape == (3, 8)
    assert graph.get_tensor_by_name("large:0").shape == (64, 64)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_hostile_names_pass_through(form):
    made = write_format(export(hostile()), form)
    if form.name.startswith("graph-def"):
        read = graph_def.parse_graph_def(made) if form.name == "graph-def" else graph_def.parse_text(made.decode())
        assert [each.name for each in read.nodes] == list(NAMES)
    elif form.name == "graphml":
        graph = nx.read_graphml(BytesIO(made))
        assert {name.split()[0] for name in graph} == {name.replace("\x01", "\ufffd").split()[0] for name in NAMES}
        ElementTree.fromstring(made)
    elif form.name in ("model-explorer", "model-explorer-data", "json"):
        text = json.dumps(json.loads(made))
        assert all(json.dumps(name)[1:-1] in text for name in NAMES)
    elif form.name == "chrome-trace":
        names = {event["name"] for event in json.loads(made)["traceEvents"] if event["ph"] == "X"}
        assert len(names & set(NAMES)) >= len(NAMES) - 1
    else:
        assert form.name == "tensorboard", "it has a test of its own"


def test_the_command_writes_a_file_and_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1500000000")
    Path("world.pbtxt").write_text("\n".join(WORLD))
    assert main(["export", "world.pbtxt", "out.graphml", "--devices", "cpu:1,gpu:2"]) == 0
    assert main(["export", "world.pbtxt", "logs/run", "--format", "tensorboard", "--devices", "cpu:1,gpu:2"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "wrote world: out.graphml", "wrote world: logs/run/events.out.tfevents.1500000000.simplace",
    ]  # fmt: skip
    assert Path("logs/run/events.out.tfevents.1500000000.simplace").is_file()
    assert dict(nx.read_graphml("out.graphml").nodes(data="device")) == DEVICES


def test_the_command_refuses_before_it_runs(capsys):
    assert main(["export", "no/such.py", "x.json"]) == 2
    assert "no known file extension" in capsys.readouterr().err


def test_the_page_lists_every_format():
    page = (Path(__file__).resolve().parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| `")}
    assert set(rows) == {f"`{form.name}`" for form in FORMATS}
    assert all(f"`{ending}`" in rows[f"`{form.name}`"] for form in FORMATS for ending in form.endings)
