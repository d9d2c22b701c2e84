"""Simulated steps against real ones on this computer's CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simplace.costs.recorded import cost_file
from simplace.devices import local_devices
from simplace.errors import ProgramError, TargetError
from simplace.importers import graph_def
from simplace.importers.program import Program
from simplace.kernels.table import KernelTable
from simplace.oracle.measure.measure import measure
from simplace.placement.placement import Placement
from simplace.schedule_check import check_schedule
from simplace.scheduling import schedule
from simplace.simulation import simulate
from tests.oracle import graphs

GRAPHS = {"layers": graphs.layers(), "chain": graphs.chain_beside_others()}


def placed(file: Path) -> Placement:
    program = Program(file.stem, "graph", graph_def.read(file), soft_placement=False)
    return simulate(program, local_devices([("CPU", 1)]), KernelTable.shipped())


def written(folder: Path, text: str) -> Path:
    file = folder / "graph.pbtxt"
    file.write_text(text)
    return file


@pytest.mark.tf
@pytest.mark.parametrize("name", GRAPHS)
def test_one_thread_runs_in_the_simulated_order_and_time(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, GRAPHS[name])
    (found,) = check_schedule(file, placed(file), inter_op=[1], steps=8, warm_up=3)
    assert found.same_order == found.steps
    assert 0.95 < found.ratio < 1.05


@pytest.mark.tf
@pytest.mark.parametrize("warm_up", [0, 150])
def test_tiny_ops_change_their_order_when_warm(warm_up: int, tmp_path: Path) -> None:
    file = written(tmp_path, graphs.tiny_chains())
    measured = measure(file, warm_up=warm_up, steps=4)
    done = schedule(placed(file), inter_op=1, intra_op=1, warm=warm_up > 0)
    nodes = done.priced.graph.nodes
    simulated = [nodes[span.node].name for span in done.trace.spans if nodes[span.node].role == "op"]
    for step in measured.steps:
        assert [name for name in step.order if name != "_SOURCE"] == simulated


@pytest.mark.tf
def test_measured_costs_can_be_used_again(tmp_path: Path) -> None:
    file = written(tmp_path, graphs.tiny_chains())
    costs = tmp_path / "costs.json"
    found = measure(file, steps=2)
    costs.write_text(json.dumps(cost_file(found.seconds, intra_op=1, gap_s=found.gap, tensorflow=found.tensorflow)))
    assert schedule(placed(file), costs=str(costs)).makespan_s > 0


@pytest.mark.tf
def test_graph_that_cannot_run_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="TensorFlow could not run it"):
        measure(written(tmp_path, 'node { name: "a" op: "NoSuchOp" }'))


def test_only_graph_files_are_measured() -> None:
    with pytest.raises(TargetError, match="only graph files can be measured"):
        measure(Path("model.py"))
