"""What `simplace schedule` prints of a small world, whole."""

from simplace.analysis.part_names import name_part
from simplace.views.figures.timeline import draw_timeline
from simplace.views.text.alike_rows import join_alike_rows
from simplace.views.text.schedule_tables import inter_op_table, write_summary
from tests.executor.worlds import Costs, parts, run
from viz import Column, Table, to_text

WORLD = """
    p = Placeholder() @c {dtype=bool}
    x = Placeholder() @c {dtype=float, shape=shape}
    A = Neg(x) @g0
    B = Neg(A) @g0
    s = Switch(B, p) @g0
    C = Neg(s:1) @c
"""


def test_summary_of_a_chain_over_two_devices() -> None:
    done = run(WORLD, Costs({"A": 3.0, "B": 2.0}, launch=0.5, copies=1.0), inter_op=1, intra_op=1)
    assert (
        write_summary(done)
        == """\
p: 8.5 ms ± 36% on the tensorflow executor, costs by name
the time of its critical path is 100% guessed (± 44%)

sends in a step: 3 copies between devices, ≥ 8 B

track            events        busy  of the step
────────────────────────────────────────────────
inter-op 0            3  2 ms ± 35%          24%
GPU:0 compute         2  5 ms ± 50%          59%
GPU:0 from host       1  1 ms ± 25%          12%
GPU:0 to host         1  1 ms ± 25%          12%

device  busy  waits for launches  copies  other devices  nothing to do
──────────────────────────────────────────────────────────────────────
CPU:0    12%                  6%     23%            59%              -
GPU:0    59%                  6%     23%            12%              -
GPU:1      -                   -       -              -           100%

start ± 36%  critical path      track                duration  source   waited ± 36%               line
───────────────────────────────────────────────────────────────────────────────────────────────────────
          0  send x:0 to GPU:0  GPU:0 from host    1 ms ± 25%  guessed  -                          -
       1 ms  A                  inter-op 0       500 µs ± 50%  guessed  -                          -
     1.5 ms  A                  GPU:0 compute      3 ms ± 50%  guessed  -                          -
     4.5 ms  B                  GPU:0 compute      2 ms ± 50%  guessed  2.5 ms for a GPU's stream  -
     6.5 ms  send s:1 to CPU:0  GPU:0 to host      1 ms ± 25%  guessed  4.5 ms for a GPU's stream  -
     7.5 ms  C                  inter-op 0         1 ms ± 50%  guessed  -                          -

waited                ops  sum over ops ± 36%  longest ± 36%
─────────────────────────────────────────────────────────────────────────
for a GPU's stream  2 ops                7 ms  send s:1 to CPU:0 (4.5 ms)

memory of   peak  limit  at ± 36%  largest tensors at the peak
──────────────────────────────────────────────────────────────
CPU:0        9 B      -         0  x 8 B, p 1 B
GPU:0      256 B      -         0  copy of x:0 256 B
GPU:1        0 B      -         0  -

note: output 1 of the condition p is taken (assumed; --branch NAME=N sets it; of an If, 1 is the then branch)

note: the unknown shape of p:0 and 2 more is taken as that of its largest input, else as a scalar

verdict: GPU:0 busy 59%, waits 23% for copies, 12% for other devices; GPU:1 idle: nothing requests it"""
    )


def test_chart_has_a_row_a_track_in_use() -> None:
    chart = draw_timeline(run(WORLD, Costs(launch=0.5), inter_op=4))
    assert [(track.owner, track.label) for track in chart.tracks] == [
        ("threads of the process", "inter-op 2"),
        ("GPU:0", "compute"),
        ("GPU:0", "from host"),
        ("GPU:0", "to host"),
    ]


def test_thread_table_compares_rows() -> None:
    text = "x = Placeholder() @c {dtype=float}\n" + "\n".join(f"A{i} = Neg(x) @c" for i in range(4))
    rows = [run(text, inter_op=size, cores=4) for size in (1, 2, 4)]
    assert (
        to_text(inter_op_table(rows))
        == """\
inter-op  intra-op    makespan    gain  waited for threads  peak memory
───────────────────────────────────────────────────────────────────────
       1         4  4 ms ± 50%       -          6 ms ± 50%          8 B
       2         4  2 ms ± 50%  +50.0%          2 ms ± 50%         12 B
       4         4  1 ms ± 50%  +50.0%                   0         20 B"""
    )


def test_sends_and_receives_are_called_by_what_they_move() -> None:
    graph = parts("""
        x = Placeholder() @c {dtype=float}
        A = Neg(x) @g0
        B = NoOp(^x) @g1
    """)
    names = {graph.nodes[i].name: name_part(graph, i) for i in range(len(graph))}
    assert {name: text for name, text in names.items() if name != text} == {
        "x:0/_send_0": "send x:0 to GPU:0",
        "x:0/_recv_0": "copy of x:0",
        "^x/_send_1": "control signal of x to GPU:1",
        "^x/_recv_1": "control signal of x to GPU:1",
    }


def test_devices_alike_share_their_rows() -> None:
    rows = [("inter-op 0", "9")]
    rows += [(f"GPU:{i} {what}", "0" if i == 4 else "5") for i in range(8) for what in ("compute", "to host")]
    joined = join_alike_rows(Table((Column("track"), Column("events")), tuple(rows)))
    assert joined.rows == (
        ("inter-op 0", "9"),
        ("GPU:0 … GPU:3 compute, each", "5"), ("GPU:0 … GPU:3 to host, each", "5"),
        ("GPU:4 compute", "0"), ("GPU:4 to host", "0"),
        ("GPU:5 … GPU:7 compute, each", "5"), ("GPU:5 … GPU:7 to host, each", "5"),
    )  # fmt: skip


def test_two_devices_alike_have_a_row_each_and_so_have_those_of_different_tasks() -> None:
    rows = tuple((name, "5") for name in ("GPU:0", "GPU:1", "task:1/GPU:2", "task:1/GPU:4", "task:1/GPU:5"))
    assert join_alike_rows(Table((Column("device"), Column("ops")), rows)).rows == rows
