"""The figure of eager ops: copies between their boxes or, where there are many, one line for each two devices."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import pytest

from benchmarks.figure_layout import measure_layout
from simplace.api import Placements
from simplace.devices.device_set import local_devices
from simplace.errors import DrawingError
from simplace.graph.dtypes import DataType
from simplace.pipeline import EagerPlacer
from simplace.placement.eager.eager_placement import EagerCopies, MadeBy, PlacedEager, PlacedOp
from simplace.program.eager_op import EagerInput, EagerOp
from simplace.result import Result
from simplace.views.figures.eager_figure import eager_figure
from tests.report import worlds
from tests.worlds import CPU, shipped


def run_lines(gpus: int, lines: int) -> Result:
    """Place lines that each run one op on the CPU, whose output each GPU reads, and gives to the CPU's next line."""
    devices = local_devices([("CPU", 1), ("GPU", gpus)])
    placer, ran = EagerPlacer(devices, shipped()), list[PlacedOp]()

    def run(line: str, device: str, sources: list[tuple[int, str]]) -> int:
        given = tuple(EagerInput(DataType.DT_FLOAT, source) for _, source in sources)
        op = "AddN" if len(given) > 1 else "Relu"
        attrs = {"T": DataType.DT_FLOAT} | ({"N": len(given)} if op == "AddN" else {})
        placed = placer.place(EagerOp(op, line, device, True, attrs, given))
        copies = tuple(
            EagerCopies(i, source, device, 1, 64) for i, (_, source) in enumerate(sources) if source != device
        )
        made_by = tuple(MadeBy(i, maker, 1) for i, (maker, _) in enumerate(sources) if maker >= 0)
        ran.append(PlacedOp(f"{line} {device}", placed, 1, copies, made_by))
        return len(ran) - 1

    on_gpus = [(-1, CPU)]
    for number in range(lines):
        first = run(f"model.py:{2 * number}", CPU, on_gpus)
        gpu_names = [device.name for device in devices if device.type == "GPU"]
        on_gpus = [(run(f"model.py:{2 * number + 1}", name, [(first, CPU)]), name) for name in gpu_names]
    return replace(worlds.towers(), programs=(), devices=devices, eager=PlacedEager(tuple(ran), devices, shipped()))


def test_few_copies_are_lines_between_boxes() -> None:
    figure = eager_figure(run_lines(1, 2))
    copies = {(edge.source, edge.target, edge.label, edge.from_group) for edge in figure.edges if edge.kind == "copy"}
    one = "1 × float32 · 64 B"
    assert copies == {("0", "1", one, False), ("1", "2", one, False), ("2", "3", one, False)}


def test_many_copies_are_one_line_for_each_two_devices() -> None:
    figure = eager_figure(run_lines(3, 4))
    copies = [edge for edge in figure.edges if edge.kind == "copy"]
    there, back = "4 × float32 · 256 B", "3 × float32 · 192 B"
    assert [(edge.label, edge.back, edge.count) for edge in copies] == [(there, back, 7)] * 3
    assert all(edge.from_group and edge.to_group for edge in copies)
    assert [group.badge for group in figure.groups] == ["", "G0", "G1", "G2"]


@pytest.mark.parametrize(
    ("gpus", "lines", "title"),
    [
        (1, 1, "Eager ops on CPU:0 and GPU:0: 1 copy, 64 B"),
        (1, 2, "Eager ops on CPU:0 and GPU:0: 3 copies, 192 B"),
        (3, 2, "Eager ops on 4 devices: 9 copies, 576 B"),
        (0, 1, "All eager ops on CPU:0"),
    ],
)
def test_the_title_says_where_ops_run_and_what_is_copied(gpus: int, lines: int, title: str) -> None:
    result = run_lines(gpus, lines)
    figure = eager_figure(result)
    assert figure.title == title
    assert figure.caption.startswith(f"{result.target} outside of functions · ")


@pytest.mark.parametrize(("gpus", "lines"), list(product((1, 3, 8), (2, 4))))
def test_no_line_crosses_a_box_or_a_title(gpus: int, lines: int) -> None:
    layout = measure_layout(eager_figure(run_lines(gpus, lines)))
    assert (layout.through_boxes, layout.through_titles, layout.overlaps, layout.is_in_order) == (0, 0, 0, True)


def test_the_library_draws_it_as_the_command_does() -> None:
    result = run_lines(1, 2)
    placements = Placements(**{field.name: getattr(result, field.name) for field in fields(result)})
    assert placements.figure().what == placements.figure("eager").what == eager_figure(result)
    assert len(placements.figure("eager", nodes=1).what.nodes) < len(eager_figure(result).nodes)
    with pytest.raises(DrawingError, match="no eager op ran"):
        replace(placements, eager=None).figure("eager")
