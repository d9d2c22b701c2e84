"""Cost files: written, read, used, refused."""

import json
from pathlib import Path

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.costs.cost_model import Overheads
from simplace.costs.recorded_costs import cost_file, recorded_costs
from simplace.costs.roofline import make_roofline
from simplace.errors import SimplaceError
from tests.executor.worlds import placed

GRAPH = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c"


def write(folder: Path, text: str) -> str:
    file = folder / "costs.json"
    file.write_text(text)
    return str(file)


def test_recorded_time_is_used(tmp_path: Path) -> None:
    file = write(tmp_path, '{"schema": "simplace/costs/1", "nodes": {"A": 0.25}}')
    done = schedule_placement(placed(GRAPH), costs=file, inter_op=1, intra_op=1)
    assert max(span.duration for span in done.trace.spans) == 250_000_500  # with half a microsecond of bookkeeping


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "simplace/costs/1", "nodes": {"B": 1}}', "costs are of another graph: 1 of 1 nodes .* such as B"),
        (
            '{"schema": "simplace/costs/1", "nodes": {"A": -1}}',
            "the cost of 'A' is -1; costs must be seconds, 0 or more",
        ),
        ('{"nodes": {}}', 'not a file of costs; one has "schema"'),
        ("nonsense", "not a JSON file of costs"),
    ],
)
def test_wrong_files_get_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SimplaceError, match=message) as caught:
        schedule_placement(placed(GRAPH), costs=write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_recorded_fixed_times_are_used(tmp_path: Path) -> None:
    fixed = '{"op_s": 0.001, "first_s": 0.002, "after_s": [[0.1, 0.05]], "parked_s": [[1, 0.01, 0]]}'
    text = f'{{"schema": "simplace/costs/1", "nodes": {{"A": 0.25}}, "overheads": {fixed}}}'
    done = schedule_placement(placed(GRAPH), costs=write(tmp_path, text), inter_op=1, intra_op=1)
    assert done.trace.makespan == 266_000_000  # 10 until the thread is awake, 3 for x, 3 and 250 for A,
    # and nothing after them: x takes no time, and nobody waits for what follows A


def test_fixed_times_are_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    fixed = Overheads(op_s=1e-6, shared_s=2e-7, contention=1.5, after_s=((0.1, 0.05),), parked_s=((1.0, 0.01, 0.0),))
    content = cost_file({"A": 0.25}, intra_op=1, fixed=fixed, tensorflow="2.21.0")
    assert recorded_costs(write(tmp_path, json.dumps(content)), make_roofline()).overheads == fixed


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ('{"op_s": "slow"}', "op_s of \"overheads\" is 'slow'; it must be a number, 0 or more"),
        ('{"parked_s": [[1, 2]]}', 'parked_s of "overheads" is a list of rows of 3 times in seconds'),
        ('{"after_s": 3}', 'after_s of "overheads" is a list of rows of 2 times'),
        ('{"speed": 3}', '"overheads" has the fields'),
    ],
)
def test_wrong_fixed_times_get_one_line(tmp_path: Path, fixed: str, message: str) -> None:
    file = write(tmp_path, f'{{"schema": "simplace/costs/1", "nodes": {{"A": 1}}, "overheads": {fixed}}}')
    with pytest.raises(SimplaceError, match=message):
        schedule_placement(placed(GRAPH), costs=file)


def test_missing_file_says_what_costs_there_are() -> None:
    with pytest.raises(SimplaceError, match="costs are modelled, analytic, flat, or a cost file"):
        schedule_placement(placed(GRAPH), costs="no/such/file")
