"""The errors of XLA that a program gets anywhere: TensorFlow raises them, as it compiles the call on the CPU.

What it refuses there it refuses on a GPU, too: a function with an op that XLA has no kernel for, or of a form that XLA
has not (xla_lowering). A call that XLA would not compile without a GPU, as Keras decided, is computed without XLA, so
that the program goes on as it does elsewhere, unless it handles the error.

XLA draws random numbers in its own way (tf2xla/kernels/stateless_random_ops_v2.cc), so that they are XLA's here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simplace.graph.op_kinds import MUST_COMPILE
from simplace.oracle.child import kernel_types
from simplace.oracle.child.boundary import forget_frames
from simplace.oracle.child.cpu_functions import CpuFunctions
from simplace.oracle.child.error_handlers import find_handlers
from simplace.oracle.child.failures import FAILURES, code_name, find_code
from simplace.oracle.child.functions import Functions
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.xla_functions import AutomaticJit
from simplace.oracle.child.xla_lowering import XlaLowering

_OF_RANDOM_OPS = ("Random", "Multinomial", "Rng")


class XlaErrors:
    """Compute what XLA may refuse, or has other random numbers for, as the program has it."""

    def __init__(
        self, functions: Functions, cpu: CpuFunctions, lowering: XlaLowering, lines: SourceLines, jit: AutomaticJit
    ) -> None:
        self._functions = functions
        self._cpu = cpu
        self._lowering = lowering
        self._lines = lines
        self._jit = jit
        self._lacking: dict[str, bool] = {}
        self._drawing: dict[str, bool] = {}

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any] | None:
        """Return what a function computes with XLA, None if it is to be computed without; raise what XLA does."""
        may_fail = self._lacks_kernel(name) or name in self._lowering.refused
        if not (may_fail or self._draws_numbers(name)):
            return None
        if self._jit.is_behind_call():
            return self._call_if_handled(name, inputs) if may_fail else None
        return self._cpu.call(name, inputs, {}, is_compiled=True)

    def _call_if_handled(self, name: str, inputs: Sequence[Any]) -> list[Any] | None:
        handlers = find_handlers(self._lines)
        if not handlers:
            return None
        try:
            return self._cpu.call(name, inputs, {}, is_compiled=True)
        except FAILURES as error:
            if code_name(find_code(error)) in handlers:
                raise
            forget_frames(error)
        return None

    def _lacks_kernel(self, name: str) -> bool:
        """Return whether a function, or one that it calls, is compiled and has an op that XLA seems not to know."""
        if name not in self._lacking:
            self._lacking[name] = not all(map(kernel_types.has_xla_kernel, self._list_compiled(name)))
        return self._lacking[name]

    def _draws_numbers(self, name: str) -> bool:
        """Return whether XLA compiles ops that draw random numbers: it has generators of its own."""
        if name not in self._drawing:
            ops = (node.op for node in self._list_compiled(name))
            self._drawing[name] = any(part in op for op in ops for part in _OF_RANDOM_OPS)
        return self._drawing[name]

    def _list_compiled(self, name: str) -> Iterator[Any]:
        """Yield the nodes that XLA compiles of a function, and of those that it calls."""
        compiled = [each for each in self._functions.reached(name) if self._is_compiled(each)]
        reached = {inner for each in compiled for inner in self._functions.reached(each)}
        return (node for each in reached for node in self._functions.definition(each).node_def)

    def _is_compiled(self, name: str) -> bool:
        return bool(self._functions.definition(name).attr[MUST_COMPILE].b)
