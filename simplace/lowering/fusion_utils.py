"""Fuse the functions of two datasets that follow each other into one, whose nodes have names of their own.

Mirrors `FuseFunctions` of tensorflow/core/grappler/optimizers/data/fusion_utils.cc, with what its callers set: a map
after a map takes its results (composed), a predicate after a map is one more result of it (combined), and a predicate
after a predicate runs where the first one holds (joined).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FuncRef, FunctionDef, NodeDef, TensorInfo

OF_DATASETS = "_tf_data_function"  # the attribute of a function that datasets call
CONTEXT = "_construction_context"
_FALSE = "false_predicate"


@dataclass(slots=True)
class FunctionLibrary:
    """Functions by name, to which fusing adds others; `size` is how many TensorFlow counts for a new name.

    `made_of` has by function that is made, and by its node, the function and the node that this was before.
    """

    functions: dict[str, FunctionDef]
    size: int
    added: dict[str, FunctionDef] = field(default_factory=dict)
    made_of: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)

    def find(self, name: str) -> FunctionDef | None:
        """Return a function, None for a name that the library lacks."""
        return self.added.get(name) or self.functions.get(name)

    def make_name(self, prefix: str) -> str:
        """Return a new name for a function, which counts as added (`SetUniqueGraphFunctionName`)."""
        self.size += 1
        return make_unique_name(prefix, self.functions.keys() | self.added.keys(), self.size)

    def add(self, function: FunctionDef, made_of: Mapping[str, tuple[str, str]]) -> None:
        """Add a function."""
        self.added[function.name] = function
        self.made_of[function.name] = dict(made_of)


def make_unique_name(prefix: str, names: Set[str], number: int) -> str:
    """Return the prefix, or the prefix with the first number from `number` on that makes it a new name.

    Mirrors `SetUniqueGraphNodeName` of grappler/optimizers/data/graph_utils.cc.
    """
    name = prefix
    while name in names:
        name, number = f"{prefix}/_{number}", number + 1
    return name


def compose_functions(first: FunctionDef, second: FunctionDef, prefix: str, library: FunctionLibrary) -> str:
    """Fuse two functions of which the second takes what the first returns; return the name, "" if TensorFlow does not.

    That is the case where their arguments do not fit, or a function has attributes that it does not know.
    """
    if len(first.outputs) != len(second.inputs) or _has_unknown_attrs(first, second):
        return ""
    renamed = _rename(first, second)
    fused = replace(
        first,
        name=library.make_name(prefix),
        outputs=renamed.function.outputs,
        ret=renamed.function.ret,
        is_stateful=first.is_stateful or second.is_stateful,
        control_outputs=(*first.control_outputs, *renamed.function.control_outputs),
    )
    return _join_nodes(fused, first, renamed, _list_results(first), library)


def combine_functions(first: FunctionDef, second: FunctionDef, prefix: str, library: FunctionLibrary) -> str:
    """Fuse two functions so that what the second returns comes after what the first does; return as above."""
    if len(first.outputs) != len(second.inputs) or _has_unknown_attrs(first, second):
        return ""
    renamed = _rename(first, second)
    fused = replace(
        first,
        name=library.make_name(prefix),
        outputs=(*first.outputs, *renamed.function.outputs),
        ret={**renamed.function.ret, **first.ret},
    )
    return _join_nodes(fused, first, renamed, _list_results(first), library)


def join_predicates(first: FunctionDef, second: FunctionDef, prefix: str, library: FunctionLibrary) -> str:
    """Fuse two predicates of the same arguments: an If calls the second where the first holds; return as above."""
    fits = len(first.inputs) == len(second.inputs) and len(first.outputs) == len(second.outputs)
    if not fits or _has_unknown_attrs(first, second):
        return ""
    renamed = _rename(first, second)
    name = library.make_name(prefix)
    types = tuple(arg.dtype for arg in first.inputs)
    boolean = DataType.DT_BOOL
    attrs = {
        "Tin": types,
        "Tcond": boolean,
        "Tout": (boolean,),
        "_lower_using_switch_merge": True,
        "then_branch": FuncRef(second.name),
        "else_branch": FuncRef(_add_false_predicate(types, library)),
    }
    (result,) = first.outputs
    condition = make_unique_name("cond", {node.name for node in first.nodes}, len(first.nodes) + 1)
    inputs = (first.ret[result.name], *(arg.name for arg in first.inputs))
    fused = replace(
        _with_attrs(first),
        name=name,
        nodes=(*first.nodes, NodeDef(condition, "If", "", inputs, attrs)),
        ret={result.name: f"{condition}:output:0"},
        control_ret=_join_controls(first.control_ret, renamed.function.control_ret),
    )
    library.add(fused, {node.name: (first.name, node.name) for node in first.nodes})
    return name


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A function whose names differ from those of another, and what its nodes were called."""

    function: FunctionDef
    before: Mapping[str, str]


def _has_unknown_attrs(*functions: FunctionDef) -> bool:
    return any(not {OF_DATASETS, CONTEXT}.issuperset(function.attrs) for function in functions)


def _list_results(function: FunctionDef) -> list[str]:
    return [function.ret[result.name] for result in function.outputs]


def _join_nodes(
    fused: FunctionDef, first: FunctionDef, renamed: _Renamed, given: Sequence[str], library: FunctionLibrary
) -> str:
    """Add a function with the nodes of both, in which the second's arguments are the tensors that it is given."""
    tensors = {arg.name: tensor for arg, tensor in zip(renamed.function.inputs, given, strict=True)}

    def exchange(ref: str) -> str:
        tensor = tensors.get(_name_of(ref))
        if tensor is None:
            return ref
        return f"^{tensor}" if ref.startswith("^") else tensor

    second = [node._replace(inputs=tuple(map(exchange, node.inputs))) for node in renamed.function.nodes]
    made = replace(
        _with_attrs(fused),
        nodes=(*first.nodes, *second),
        ret={result: exchange(ref) for result, ref in fused.ret.items()},
        control_ret=_join_controls(first.control_ret, renamed.function.control_ret),
    )
    made_of = {node.name: (first.name, node.name) for node in first.nodes}
    made_of |= {name: (renamed.function.name, before) for name, before in renamed.before.items()}
    library.add(made, made_of)
    return made.name


def _with_attrs(function: FunctionDef) -> FunctionDef:
    attrs = {key: value for key, value in function.attrs.items() if key == CONTEXT}
    return replace(function, attrs={**attrs, OF_DATASETS: True}, arg_attrs={}, needs=(), signature_attrs=())


def _join_controls(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    joined = {**second, **first}
    return {key: joined[key] for key in sorted(joined)}


def _rename(first: FunctionDef, second: FunctionDef) -> _Renamed:
    """Return the second function with other names where the first has them, too."""
    inputs = _find_new_names(first.inputs, second.inputs)
    outputs = _find_new_names(first.outputs, second.outputs)
    nodes = _find_new_names(first.nodes, second.nodes)

    def rename_argument(ref: str) -> str:
        return _rename_source(ref, inputs)

    def rename_node(ref: str) -> str:
        # TensorFlow does not look behind the "^" of control inputs here: they keep their names.
        name, colon, rest = ref.partition(":")
        return nodes.get(name, name) + colon + rest

    def change(node: NodeDef) -> NodeDef:
        changed = tuple(rename_node(rename_argument(ref)) for ref in node.inputs)
        return node._replace(name=nodes.get(node.name, node.name), inputs=changed)

    controls = [rename_node(rename_argument(ref)) for ref in second.control_ret.values()]
    made = replace(
        second,
        inputs=tuple(_call(arg, inputs) for arg in second.inputs),
        outputs=tuple(_call(arg, outputs) for arg in second.outputs),
        nodes=tuple(change(node) for node in second.nodes),
        ret={outputs.get(name, name): rename_node(rename_argument(ref)) for name, ref in second.ret.items()},
        control_ret={name: name for name in controls},
        control_outputs=tuple(controls),
    )
    return _Renamed(made, {new.name: old.name for new, old in zip(made.nodes, second.nodes, strict=True)})


def _call(arg: ArgDef, names: Mapping[str, str]) -> ArgDef:
    return replace(arg, name=names.get(arg.name, arg.name))


def _find_new_names(first: Iterable[ArgDef | NodeDef], second: Sequence[ArgDef | NodeDef]) -> dict[str, str]:
    """Return other names for those of the second that the first has, too (`GetUniqueNames`)."""
    taken = {one.name for one in first}
    given = set(taken)
    found: dict[str, str] = {}
    number = len(second)
    for one in second:
        name = one.name
        while name in taken or (name != one.name and name in given):
            name, number = f"{one.name}/_{number}", number + 1
        if name != one.name:
            found[one.name] = name
            given.add(name)
    return found


def _rename_source(ref: str, names: Mapping[str, str]) -> str:
    control = "^" if ref.startswith("^") else ""
    name, colon, rest = ref.removeprefix("^").partition(":")
    return f"{control}{names.get(name, name)}{colon}{rest}"


def _add_false_predicate(types: Sequence[DataType], library: FunctionLibrary) -> str:
    value = NodeDef("Const", "Const", "", (), {
        "dtype": DataType.DT_BOOL, "value": TensorInfo(DataType.DT_BOOL, (), 0),
    })  # fmt: skip
    made = FunctionDef(
        name=library.make_name(_FALSE),
        inputs=tuple(ArgDef(f"fake_arg{i}", dtype) for i, dtype in enumerate(types)),
        outputs=(ArgDef("false_out", DataType.DT_BOOL),),
        nodes=(value,),
        ret={"false_out": "Const:output:0"},
        control_ret={},
        control_outputs=(),
        attrs={},
        arg_attrs={},
    )
    library.add(made, {})
    return made.name


def _name_of(ref: str) -> str:
    return ref.removeprefix("^").partition(":")[0]
