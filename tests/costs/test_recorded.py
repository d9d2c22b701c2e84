"""Cost files: read, used, refused."""

from pathlib import Path

import pytest

from simplace.errors import SimplaceError
from simplace.scheduling import schedule
from tests.executor.worlds import placed

GRAPH = "x = Placeholder() @c {dtype=float}\n A = Neg(x) @c"


def write(folder: Path, text: str) -> str:
    file = folder / "costs.json"
    file.write_text(text)
    return str(file)


def test_recorded_time_is_used(tmp_path: Path) -> None:
    file = write(tmp_path, '{"schema": "simplace/costs/1", "nodes": {"A": 0.25}}')
    done = schedule(placed(GRAPH), costs=file, inter_op=1, intra_op=1)
    assert max(span.duration for span in done.trace.spans) == 250_000_500  # with half a microsecond of bookkeeping


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "simplace/costs/1", "nodes": {"B": 1}}', "costs are of another graph: 1 of 1 nodes .* such as B"),
        ('{"schema": "simplace/costs/1", "nodes": {"A": -1}}', "the cost of 'A' is -1; costs are seconds, from 0 on"),
        ('{"nodes": {}}', 'not a file of costs; one has "schema"'),
        ("nonsense", "not a JSON file of costs"),
    ],
)
def test_wrong_files_get_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SimplaceError, match=message) as caught:
        schedule(placed(GRAPH), costs=write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_missing_file_says_what_costs_there_are() -> None:
    with pytest.raises(SimplaceError, match="costs are analytic, flat, or a cost file"):
        schedule(placed(GRAPH), costs="no/such/file")
