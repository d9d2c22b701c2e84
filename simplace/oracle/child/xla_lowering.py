"""What XLA compiles, or refuses though it has all kernels: it is asked for its own form of a function, on the CPU.

That form (HLO) is made by the same code for all devices (tensorflow/compiler/tf2xla/xla_compiler.cc); no machine code
is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from simplace.oracle.child.functions import Functions
from simplace.oracle.child.host_variables import lend_to_host
from simplace.oracle.child.recorder import Recorder, text_of
from simplace.oracle.child.tensors import find_host, to_device
from simplace.oracle.child.tf_private import context, record

_LARGEST = 3000  # nodes; beyond that it takes seconds
_LACKS_KERNEL = "Detected unsupported operations"  # which the kernel table tells already
_HEAD = "Failed getting HLO text: '"


class XlaLowering:
    """Ask XLA about each function that it is to compile on an emulated GPU, once."""

    def __init__(self, functions: Functions, recorder: Recorder) -> None:
        self._functions = functions
        self._recorder = recorder
        self.refused: set[str] = set()  # the functions that it is against

    def ask(self, name: str, inputs: Sequence[Any], program: int) -> None:
        """Record what XLA says against a function, or that it has nothing; `program` is the number of its program."""
        reached = self._functions.reached(name)
        if sum(len(self._functions.definition(each).node_def) for each in reached) > _LARGEST:
            return
        with lend_to_host(inputs) as lent, record.stop_recording():
            given = [to_device(tensor, find_host()) for tensor in lent]
            try:
                context.context().get_compiler_ir(
                    device_name=find_host(), platform_name=None, function_name=name, flat_args=given,
                    captured_inputs=[], stage="hlo",
                )  # fmt: skip
            except (ValueError, tf.errors.OpError) as error:
                self._record(name, program, text_of(error))
            else:
                self.note_lowered(program)

    def note_lowered(self, program: int) -> None:
        """Record that XLA made its form of the function of a program, by number."""
        self._recorder.event("XLA lowers", program=program)

    def _record(self, name: str, program: int, said: str) -> None:
        error = said.removeprefix(_HEAD).splitlines()[0].rstrip("'")
        if not said.startswith(_HEAD) or error.startswith(_LACKS_KERNEL):
            return
        self.refused.add(name)
        self._recorder.event("XLA refuses", program=program, error=error)
