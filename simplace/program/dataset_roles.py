"""What the functions that datasets call are to their user: "map: normalise"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from simplace.graph.function_names import FUSED, SPLITS, name_transformation, shown_name

_NAME_BEFORE = "(?:Dataset_|tf_data_experimental_)?{}_(.+)"  # the transformation, in structured_function.py
_REMOTE = re.compile(r"_remote_(\w+)_func")  # what TensorFlow makes to take elements over to another device
_LAMBDA = "lambda"


@dataclass(frozen=True, slots=True)
class FunctionMaker:
    """Record of what a dataset's function is made of.

    `called` is what the user's line calls of a library, so that it is traced, "" where that is not known. `name` is
    that of the function of Python, which `is_users` or a library's.
    """

    called: str
    name: str
    is_users: bool


def describe_function(op: str, attr: str, function: str, makers: Mapping[str, FunctionMaker], called: str) -> str:
    """Return what a function is for the user's line, and whose it is, given its full name.

    The op calls it by the attribute; `called` is what the user's line calls, so that the op runs, where `makers` does
    not have the function. Of what a library makes within such a call, the transformation is told, too.

    >>> mine, made = FunctionMaker("map", "normalise", True), FunctionMaker("fit", "_grab_batch", False)
    >>> describe_function("ParallelMapDatasetV2", "f", "f", {"f": mine}, "map")
    'map: normalise'
    >>> describe_function("MapDataset", "f", "g", {"g": made}, "fit")
    'fit: map grab_batch'
    >>> describe_function("GroupByWindowDataset", "key_func", "__inference_Dataset_group_by_window_lambda_1", {}, "")
    'group_by_window: key_func'

    What takes elements over to another device is made by several calls.

    >>> describe_function("GeneratorDataset", "init_func", "__inference__remote_init_func_1", {}, "")
    'remote init'

    What tf.data's optimizers make of functions is named after these.

    >>> describe_function("MapDataset", "f", "map_fusion_funcs/f/g", {"f": mine, "g": made}, "")
    'map: normalise and grab_batch, fused'
    """
    transformation = name_transformation(op)
    if function.startswith(FUSED):
        parts = [_find_maker(part, transformation, makers).name.strip("_") for part in function.split("/")[1:]]
        return f"{transformation}: {' and '.join(parts)}, fused"
    if split := next((end for end in SPLITS if function.endswith(end)), ""):
        whole = describe_function(op, attr, function.removesuffix(split), makers, called)
        return f"{whole}, {split.strip('_').replace('_', ' ')}"
    maker = _find_maker(function, transformation, makers)
    called = maker.called or called
    argument = _name_argument(attr, transformation)
    if remote := _REMOTE.fullmatch(maker.name):
        return f"{called}: remote {remote[1]}" if called else f"remote {remote[1]}"
    if called in ("", transformation):
        is_shown = not argument or (maker.is_users and maker.name != _LAMBDA)
        return f"{transformation}: {_join(argument, maker.name.strip('_') if is_shown else '')}"
    if maker.is_users:
        return f"{called}: {_join(argument, maker.name)}"
    name = "function" if maker.name == _LAMBDA else maker.name.strip("_")
    return f"{called}: {_join(transformation, argument or name)}"


def _find_maker(function: str, transformation: str, makers: Mapping[str, FunctionMaker]) -> FunctionMaker:
    """Return what a function is made of, by its name where nothing tells."""
    if function in makers:
        return makers[function]
    name = shown_name(function)
    found = re.fullmatch(_NAME_BEFORE.format(transformation), name)
    return FunctionMaker("", found[1] if found else name, False)


def _name_argument(attr: str, transformation: str) -> str:
    """Return the argument that a function is given as, "" for the only one of a transformation.

    >>> _name_argument("key_func", "group_by_window"), _name_argument("next_func", "from_generator")
    ('key_func', 'next')
    """
    if not attr.endswith("_func"):
        return ""
    return attr.removesuffix("_func") if transformation == "from_generator" else attr


def _join(*words: str) -> str:
    return " ".join(filter(None, words))
