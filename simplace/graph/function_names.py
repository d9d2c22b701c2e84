"""The names that TensorFlow generates for traced functions, as their author knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_GRADIENTS = "gradient_tape/"
FUSED = "map_fusion_funcs/"  # grappler/optimizers/data/map_fusion.cc
SPLITS = ("_first_split", "_second_split")  # grappler/optimizers/data/split_utils.cc
_KIND = re.compile(r"^(?:Experimental|Legacy|Parallel)*(?P<kind>\w*?)Dataset(?:V\d+)?$")
_WORDS = re.compile(r"[A-Z][a-z0-9]*")
_SPECIALIZED = "_specialized_for_"  # grappler/optimizers/function_optimizer.cc
_GENERATED = re.compile(r"^__(inference|forward|backward)_(.+)_\d+$")


def name_by_layers(name: str, layers: Mapping[str, str]) -> str:
    """Return a node's name with its scopes called as the layers are that they belong to, "" where that is the same.

    A gradient lies in scopes of the same names below one of its own.

    >>> layers = {"model_1": "model", "model_1/dense_3": "dense"}
    >>> name_by_layers("gradient_tape/model_1/dense_3/MatMul", layers), name_by_layers("other/dense_3/MatMul", layers)
    ('gradient_tape/model/dense/MatMul', '')
    """
    own = name.removeprefix(_GRADIENTS)
    parts = own.split("/")
    known = [layers.get("/".join(parts[: i + 1]), part) for i, part in enumerate(parts)]
    found = name[: len(name) - len(own)] + "/".join(known)
    return found if found != name else ""


def shown_name(name: str) -> str:
    """Return the name of a function that its author knows.

    >>> [shown_name(name) for name in ("__inference_step_123", "__forward_f_2_9", "__inference___backward_f_4_17")]
    ['step', 'f_2 (forward)', 'f (backward)']

    Those that tf.data makes of functions have the names of these in theirs.

    >>> shown_name("map_fusion_funcs/__inference_f_1/__inference_g_2"), shown_name("__inference_f_1_first_split")
    ('map_fusion_funcs/f/g', 'f_first_split')
    """
    if name.startswith(FUSED):
        return "/".join(map(shown_name, name.split("/")))
    if name.endswith(SPLITS):
        own, end = name.rsplit("_", 2)[0], "_".join(name.rsplit("_", 2)[1:])
        return f"{shown_name(own)}_{end}"
    part = ""
    while found := _GENERATED.match(name):
        part, name = found[1], found[2]
    return f"{name} ({part})" if part in ("forward", "backward") else name


def drop_specialization(name: str) -> str:
    """Return the name of the function that Grappler has made one of for a call, any other name as it is.

    >>> drop_specialization("__inference_f_1_specialized_for_PartitionedCall_at___inference_step_2")
    '__inference_f_1'
    """
    return name.partition(_SPECIALIZED)[0]


def split_dataset_op(op: str) -> list[str]:
    """Return the words of what a dataset op does, [] for another op.

    >>> split_dataset_op("ParallelMapDatasetV2"), split_dataset_op("GroupByWindowDataset"), split_dataset_op("Add")
    (['map'], ['group', 'by', 'window'], [])
    """
    found = _KIND.match(op)
    return [word.lower() for word in _WORDS.findall(found["kind"])] if found else []


def name_transformation(op: str) -> str:
    """Return the method of `tf.data.Dataset`, or the like, that makes a dataset of an op.

    >>> [name_transformation(op) for op in ("ParallelInterleaveDatasetV4", "GroupByWindowDataset", "GeneratorDataset")]
    ['interleave', 'group_by_window', 'from_generator']
    """
    words = split_dataset_op(op) or [op]
    return "from_generator" if words == ["generator"] else "_".join(words)
