"""What a call of a function is to a user of Keras, whose steps all have the same few names: "fit, train step"."""

from __future__ import annotations

import inspect
import re
from types import CodeType

from simplace.oracle.child.source_lines import SourceLines

# The method of a model that calls a function, whichever version of Keras it is of, and what it calls the function.
_STEPS = {
    "fit": "train step",
    "train_on_batch": "train step",
    "evaluate": "test step",
    "test_on_batch": "test step",
    "predict": "predict step",
    "predict_on_batch": "predict step",
}
_KERAS = re.compile(r"[/\\](tf_)?keras[/\\](src[/\\])?(backend[/\\]tensorflow|trainers|engine)[/\\]")
# The functions that `make_train_function` and its siblings make, in Keras 3 and before.
_MADE = frozenset({
    "multi_step_on_iterator", "one_step_on_iterator", "one_step_on_data", "one_step_on_data_distributed",
    "multi_step_on_data", "multi_step_on_iterator_data", "train_function", "test_function", "predict_function",
    "run_step", "step_function",
})  # fmt: skip
_INITIALIZER = "initialize_variables"  # what tf.function calls before the function that makes variables


def name_keras_call(name: str, lines: SourceLines) -> str:
    """Return what the function called `name` does for the model's method that calls it now, "" where none does.

    The outermost method comes first, so that the validation in `fit` is "fit, test step".
    """
    python_name = name.partition(" ")[0]
    if python_name not in _MADE and python_name != _INITIALIZER:
        return ""
    methods = _list_methods(lines)
    if not methods:
        return ""
    step = "initialization of variables" if python_name == _INITIALIZER else _STEPS[methods[0]]
    return f"{methods[-1]}, {step}"


def _list_methods(lines: SourceLines) -> list[str]:
    """List the methods of a model that run now and that no code of the user's has called since, the innermost first."""
    found: list[str] = []
    frame = inspect.currentframe()
    while frame is not None and not lines.is_of_user(frame.f_code):
        if _is_method(frame.f_code):
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


def _is_method(code: CodeType) -> bool:
    return code.co_name in _STEPS and _KERAS.search(code.co_filename) is not None
