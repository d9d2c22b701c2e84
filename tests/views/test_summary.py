"""What the summary of a run says of its programs."""

from simplace.result import Placed, Result
from simplace.views.text.summary import write_summary
from tests.worlds import constant, node, place

A = constant("a", (2, 3))


def test_a_gpu_that_another_program_uses_is_not_idle():
    def idle(*programs):
        placements = [place(A, *nodes, name=f"p{i}") for i, nodes in enumerate(programs)]
        placed = tuple(Placed(placement) for placement in placements)
        said = write_summary(Result("model.py", "2.21.0", "shipped", placements[0].devices, placed))
        return [line for line in said.splitlines() if "idle" in line]

    first, second = (node("m", "MatMul", "a", "a", device=f"/GPU:{i}") for i in (0, 1))
    assert len(idle([first])) == 1
    assert len(idle([first], [first])) == 2
    assert idle([first], [second]) == []
