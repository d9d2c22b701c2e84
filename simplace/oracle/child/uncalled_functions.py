"""The `tf.function`s that a program defines and never calls: placed by a call with zeros where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from simplace.oracle.child.boundary import is_own, wrap_foreign
from simplace.oracle.child.own_work import INSIDE
from simplace.oracle.child.reached_functions import ReachedFunctions
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.script import first_line
from simplace.oracle.child.tensors import make_zeros
from simplace.oracle.child.tf_private import polymorphic_function


def call_all(names: Mapping[str, Any], narrow: str, recorder: Recorder, reached: ReachedFunctions) -> None:
    """Call each uncalled module-level function that has an input signature; write a remark on each other one."""
    for name, value in names.items():
        if not isinstance(value, polymorphic_function.Function) or reached.is_called(value):
            continue
        if value.experimental_get_tracing_count():
            continue
        if narrow and narrow not in (name, value.python_function.__name__):
            continue
        _call_with_zeros(name, value, recorder)


def _call_with_zeros(name: str, function: Any, recorder: Recorder) -> None:
    if function.input_signature is None:
        arguments = ", ".join(function.function_spec.arg_names)
        recorder.remark(
            f"{name} is a tf.function that was never called: call it in the program, as in {name}({arguments}), "
            "or give it an input_signature."
        )
        return
    recorder.remark(f"{name} was never called by the program: it was called once with zeros for its input_signature.")
    try:
        traced = wrap_foreign(function.get_concrete_function)()
        with INSIDE:
            zeros_for_it = tf.nest.map_structure(_make_zero, function.input_signature)
        wrap_foreign(traced)(*zeros_for_it)
    except Exception as error:
        # The body is the user's and was never meant to run on zeros: what it raises is worth a line, not an end.
        if is_own(error):
            raise
        recorder.uncaught(error)
        recorder.remark(f"{name}, called with zeros, raised {first_line(error)}")


def _make_zero(spec: Any) -> Any:
    return tf.constant(make_zeros(spec.dtype, spec.shape), spec.dtype)
