"""Variables in memory: shared by those who read them, copied before an update that would change what is read."""

from __future__ import annotations

import pytest

from simplace.executor.trace import PERMANENT
from tests.executor.worlds import Costs, run

GRAIN = 256  # bytes: what two floats take
GIVEN = """
    v = VarHandleOp() @g0 {dtype=float, shape=shape}
    x = Placeholder() @g0 {dtype=float, shape=shape}
"""
READ = "read = ReadVariableOp(v) @g0 {dtype=float}"


def allocations(line: str) -> list[str]:
    """List the nodes that allocate in a step, by name."""
    done = run(f"{GIVEN}    {READ}\n    {line}", Costs())
    names = done.estimated.graph.nodes
    return sorted(names[change.node].name for change in done.trace.memory if change.change > 0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y = Neg(read) @g0", ["x", "y"]),  # what others hold is not written into
        ("y = AssignSubVariableOp(v, x, ^read) @g0 {dtype=float}", ["x"]),  # nobody holds what was read
        ("y = AssignSubVariableOp(v, read) @g0 {dtype=float}", ["x", "y"]),
        ("y = AssignVariableOp(v, x, ^read) @g0 {dtype=float}", ["x"]),  # takes the value's memory
    ],
)
def test_a_step_allocates(line: str, expected: list[str]) -> None:
    assert allocations(line) == expected


def test_a_variable_that_is_only_written_is_in_memory_from_the_beginning() -> None:
    done = run(f"{GIVEN}    y = AssignAddVariableOp(v, x) @g0 {{dtype=float}}", Costs())
    assert done.memory[1].resident == GRAIN


def test_a_variable_accessed_by_rows_is_copied_by_each_read_and_update() -> None:
    rows = (
        "rows = ResourceGather(v, i, ^read) @g0 {dtype=float, Tindices=int32}\n    i = Placeholder() @c {dtype=int32}"
    )
    assert allocations(rows + "\n    y = AssignSubVariableOp(v, x, ^rows) @g0 {dtype=float}") == [
        "i", "i:0/_recv_0", "read", "rows", "x", "y",
    ]  # fmt: skip


ROWS = """
    i = Placeholder() @g0 {dtype=int32, shape=dims(2)}
    rows = ResourceGather(v, i) @g0 {dtype=float, Tindices=int32}
    read = ReadVariableOp(v, ^rows) @g0 {dtype=float}
    z = AddV2(rows, read) @g0
"""


@pytest.mark.parametrize("settled", [False, True])
def test_reads_are_copies_since_rows_were_accessed(settled: bool) -> None:
    early = ROWS.replace("ReadVariableOp(v, ^rows)", "ReadVariableOp(v)").replace(
        "ResourceGather(v, i)", "ResourceGather(v, i, ^read)"
    )
    assert count_copies(ROWS, warm=settled) == 1  # the rows were accessed before, in this step
    assert count_copies(early, warm=settled) == (1 if settled else 0)  # in steps before, or in none


def count_copies(text: str, *, warm: bool) -> int:
    done = run(GIVEN + text, Costs(), warm=warm)
    names = done.estimated.graph.nodes
    made = [change for change in done.trace.memory if change.change > 0 and change.slot != PERMANENT]
    return sum(names[change.node].name == "read" for change in made)
