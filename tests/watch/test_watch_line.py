"""The line that is told at the end, in the words of a watched block."""

from __future__ import annotations

from simplace.program.watched import RanCopy, RanFunction, RanOps, Watched
from simplace.views.text.watch_line import write_watch_line

TASK = "/job:localhost/replica:0/task:0/device:"
CPU, GPU, SECOND = f"{TASK}CPU:0", f"{TASK}GPU:0", f"{TASK}GPU:1"


def step(*ops: RanOps, times: int = 100, copies: tuple[RanCopy, ...] = ()) -> RanFunction:
    return RanFunction("train_step", times, ops, copies)


def copy(size: int | None) -> RanCopy:
    return RanCopy("x:0", CPU, GPU, size)


def test_ops_beside_the_gpu_are_named_with_their_lines():
    ops = (
        RanOps("MatMul", GPU, "model.py:9", 412),
        RanOps("StringJoin", CPU, "model.py:31"),
        RanOps("Range", CPU, "", 8),
    )
    watched = Watched((step(*ops, copies=(copy(1 << 20), copy(1 << 18), copy(0))),))
    assert write_watch_line(watched) == (
        "simplace: 412 ops on GPU:0, 9 on CPU:0: Range ×8, StringJoin (model.py:31); 3 copies a step, 1.25 MiB"
    )


def test_of_several_gpus_only_the_cpu_has_its_ops_named():
    ops = (RanOps("MatMul", GPU, "", 5), RanOps("MatMul", SECOND, "", 4), RanOps("Print", CPU, "m.py:1"))
    watched = Watched((step(*ops),))
    assert write_watch_line(watched) == "simplace: 5 ops on GPU:0, 4 on GPU:1, 1 on CPU:0: Print (m.py:1); no copies"


def test_unknown_sizes_make_a_sum_a_lower_bound():
    watched = Watched((step(RanOps("MatMul", GPU, ""), copies=(copy(64), copy(None))),))
    assert write_watch_line(watched) == "simplace: 1 op on GPU:0; 2 copies a step, ≥ 64 B"
    unknown = Watched((step(RanOps("MatMul", GPU, ""), times=1, copies=(copy(None),)),))
    assert write_watch_line(unknown) == "simplace: 1 op on GPU:0; 1 copy, unknown size"


def test_the_step_is_what_was_called_most():
    rare = RanFunction("evaluate", 2, (RanOps("MatMul", GPU, "", 50),), (copy(1), copy(1)))
    assert Watched((rare, step(RanOps("MatMul", GPU, ""), copies=(copy(8),)))).step().name == "train_step"


def test_more_than_three_ops_are_cut():
    ops = [RanOps(name, CPU, "") for name in ("A", "B", "C", "D")]
    watched = Watched((), (RanOps("MatMul", GPU, "", 9), *ops))
    assert write_watch_line(watched) == "simplace: 9 ops on GPU:0, 4 on CPU:0: A, B, C, ...; no function was called"


def test_nothing_that_ran_is_said_with_why():
    assert write_watch_line(Watched()) == "simplace: TensorFlow ran no op while it was watched"
    watched = Watched(remarks=("Runs of sessions (2) are not counted.",))
    assert write_watch_line(watched) == (
        "simplace: TensorFlow ran no op while it was watched. Runs of sessions (2) are not counted"
    )
    assert write_watch_line(Watched((step(),))) == "simplace: nothing is known of what ran"
