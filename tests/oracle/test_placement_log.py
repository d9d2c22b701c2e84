"""Every dialect of TensorFlow's placement log is read, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.oracle.placement_log import Executed, PlacementLine, parse_log, read_line, read_thread
from simplace.program.observation import LoggedNode

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
NEW = "I0000 00:00:1795191363.877728    5112 placer.cc:162] "
OLD = "2024-11-20 16:05:01.123456: I tensorflow/core/common_runtime/placer.cc:125] "
DATED = "2024-11-20 16:05:01.123456: I    5112 tensorflow/core/common_runtime/placer.cc:162] "
OLDEST = "I tensorflow/core/common_runtime/simple_placer.cc:818] "

DIALECTS = {
    "2015, no op": ("b: /job:localhost/replica:0/task:0/gpu:0", LoggedNode("b", "", GPU)),
    "no colon before the device": ("b: (MatMul)/job:localhost/replica:0/task:0/gpu:0", LoggedNode("b", "MatMul", GPU)),
    "lower-case device": ("b: (MatMul): /job:localhost/replica:0/task:0/gpu:0", LoggedNode("b", "MatMul", GPU)),
    "stdout of today": (f"b: (MatMul): {GPU}", LoggedNode("b", "MatMul", GPU)),
    "prefix without a date": (f"{OLDEST}b: (MatMul){GPU}", LoggedNode("b", "MatMul", GPU)),
    "prefix with a date": (f"{OLD}b: (MatMul): {GPU}", LoggedNode("b", "MatMul", GPU)),
    "prefix with a date and a thread": (f"{DATED}b: (MatMul): {GPU}", LoggedNode("b", "MatMul", GPU)),
    "prefix with a thread": (f"{NEW}a/b_1: (_Arg): {GPU}", LoggedNode("a/b_1", "_Arg", GPU)),
    "inlined name": (f"{NEW}Func/f/input/_9: (Identity): {GPU}", LoggedNode("Func/f/input/_9", "Identity", GPU)),
    "op in a namespace": (f"{NEW}x: (Addons>Gelu): {GPU}", LoggedNode("x", "Addons>Gelu", GPU)),
    "placed on": (f"{NEW.replace('162', '172')}b(MatMul) placed on: {GPU}", LoggedNode("b", "MatMul", GPU)),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reads_dialect(dialect: str) -> None:
    line, node = DIALECTS[dialect]
    assert parse_log(f"noise\n{line}\nEpoch 1/2") == (node,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "loss: 0.25",
        f"Device mapping:\n{GPU} -> device: 0, name: Tesla",
        f"{NEW}Ignoring device specification {GPU} for node 'x' because the input edge from 'y' is a reference",
        "b: (MatMul): /job:localhost/replica:0",
    ],
)
def test_skips_other_lines(line: str) -> None:
    assert parse_log(line) == ()


@pytest.mark.parametrize(("prefix", "thread"), [(NEW, 5112), (DATED, 5112), (OLD, None), ("", None)])
def test_reads_which_thread_a_line_is_of(prefix: str, thread: int | None) -> None:
    line = read_line(f"{prefix}b: (MatMul): {GPU}")
    assert line is not None
    assert line.thread == thread
    assert read_thread(f"{prefix}Added send/recv: ") == thread


def test_executing_line_is_no_placement() -> None:
    line = f"{NEW}Executing op __inference_f_14 in device {GPU}"
    assert read_line(line) == Executed("__inference_f_14", GPU, 5112)
    assert parse_log(line) == ()


def test_both_streams_count_once() -> None:
    text = f"b: (MatMul): {GPU}\n{NEW}b: (MatMul): {GPU}\n{NEW}b(MatMul) placed on: {GPU}\n"
    assert parse_log(text) == (LoggedNode("b", "MatMul", GPU),)


@given(
    name=st.from_regex(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", fullmatch=True),
    op=st.from_regex(r"[A-Z_][A-Za-z0-9]*", fullmatch=True),
    task=st.integers(0, 99),
    kind=st.sampled_from(["CPU", "GPU"]),
    number=st.integers(0, 99),
    thread=st.integers(1, 10**7),
)
def test_what_is_printed_is_read_back(name: str, op: str, task: int, kind: str, number: int, thread: int) -> None:
    device = f"/job:worker/replica:0/task:{task}/device:{kind}:{number}"
    line = f"I0000 00:00:1795191363.877728 {thread:7} placer.cc:162] {name}: ({op}): {device}"
    assert read_line(line) == PlacementLine(LoggedNode(name, op, device), thread)
    assert parse_log(f"{name}: ({op}): {device}") == (LoggedNode(name, op, device),)


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    parse_log(text)
