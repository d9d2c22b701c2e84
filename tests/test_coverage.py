"""How much of a log belongs to what is shown."""

from __future__ import annotations

from simplace.compare.coverage import Coverage, measure_coverage
from simplace.devices.device_set import local_devices
from simplace.kernels.registry import KernelTable
from simplace.oracle.log_blocks import cut_log
from simplace.pipeline import place_program
from tests.lowering.worlds import call_program, function

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
PREFIX = "I0000 00:00:1.2    {} "


def logged(text: str) -> list[str]:
    """Write a log: lines such as `7 f` (function f begins on thread 7), `7 x Neg` (placed), `7 ! f` (executed)."""
    lines = []
    for line in text.strip().splitlines():
        thread, first, *rest = line.split()
        start = PREFIX.format(thread)
        if first == "!":
            lines.append(f"{start}execute.cc:1775] Executing op {rest[0]} in device {CPU}")
        elif rest:
            lines.append(f"{start}placer.cc:162] {first}: ({rest[0]}): {CPU}")
        else:
            begun = f'Instantiating MultiDevice function "{first}" on default device "{CPU}"'
            lines.append(f"{start}process_function_library_runtime.cc:518] {begun}")
    return lines


def test_a_log_is_cut_into_graphs_by_thread() -> None:
    log = cut_log(logged("7 f\n7 x _Arg\n8 g\n8 y Neg\n7 z Neg\n7 ! f\n7 s Const\n8 g\n8 y Neg"))
    assert [(graph.function, [node.name for node in graph.nodes], graph.times) for graph in log.graphs] == [
        ("f", ["x", "z"], 1),
        ("g", ["y"], 2),
        ("", ["s"], 1),
    ]
    assert log.executed == {"f": 1}


def test_what_belongs_to_no_program_is_listed() -> None:
    f = function("f(x: float) -> y: float", "n = Neg(x)", {"y": "n:y:0"})
    shown = place_program(call_program(f), local_devices([("CPU", 1)]), KernelTable.shipped())
    log = cut_log(
        logged(
            "7 f\n7 x _Arg\n7 n Neg\n7 y_RetVal _Retval\n7 ! f\n7 ! f\n7 h\n7 m Mul\n7 __wrapped__Neg\n7 Neg Neg"
            "\n7 ! Neg\n7 ! __g\n7 simplace_cpu_f\n7 n Neg\n7 f_partitioned_12_0\n7 other Neg"
            "\n7 f_specialized_for_call_at_g\n7 pushed_down Const"
        )
    )
    assert measure_coverage([shown], log, eager=1) == Coverage(7, 9, 1, ("m of h", "the call __g"))
