"""Every output of graphs of odd shapes, without TensorFlow; tests/samples has those of every sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simplace.api import Diff
from simplace.changes.what_if import suppose_changes
from simplace.executor.execution import EXECUTORS
from simplace.exports.formats import FORMATS
from simplace.placement.placement import Placement
from tests.exports import every_output, readers
from tests.report import worlds
from tests.views import graphs
from tests.worlds import constant, node, place

OF_WHAT_RUNS = {f"export{form.endings[0]}" for form in FORMATS if form.of_one}


def refused() -> Placement:
    return place(constant("a", (2,)), node("x", "AsString", "a", device="/GPU:0"), soft=False)


def outputs(placement: Placement) -> dict[str, bytes]:
    result = worlds.result(placement)
    return every_output.outputs(result, Diff(result, suppose_changes(result, soft_placement=True)))


@pytest.mark.parametrize("graph", [graphs.loop, lambda: graphs.towers(2), lambda: graphs.training_step(3)])
def test_every_output_can_be_read(graph: Callable[[], Placement]) -> None:
    placement = graph()
    read = {name: readers.read(name, data) for name, data in outputs(placement).items()}
    wanted = {node.name: node.device for node in placement.nodes}
    for name in ("show.json", "export.pb", "export.pbtxt", "export.graphml", "export.report.json"):
        assert readers.devices(read[name]) == [wanted], name


def test_a_program_without_nodes_has_every_output_too() -> None:
    assert outputs(graphs.empty()).keys() == outputs(graphs.loop()).keys()


def test_what_tensorflow_refuses_has_all_but_what_runs() -> None:
    made = outputs(refused())
    every = outputs(graphs.loop())
    simulated = {name for name in every if name.startswith(tuple(EXECUTORS))}
    assert every.keys() - made.keys() == OF_WHAT_RUNS | simulated
    read = {name: readers.read(name, data) for name, data in made.items()}
    assert "refused: TensorFlow does not place this graph (INVALID_ARGUMENT)" in read["show.txt"]
