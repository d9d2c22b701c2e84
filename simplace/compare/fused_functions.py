"""Find the functions that TensorFlow made of those of datasets which a program makes outside of functions.

TensorFlow rewrites the graph of such a dataset when something walks through it, and logs what it made under a name of
its own. Which options a dataset has, that log tells.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

from simplace.graph.dtypes import DataType
from simplace.graph.function_names import FUSED, SPLITS, shown_name
from simplace.graph.node_def import ArgDef, FuncRef, FunctionDef, GraphDef, NodeDef, TensorInfo
from simplace.graph.op_kinds import is_partitioned_call
from simplace.kernels.registry import KernelTable
from simplace.lowering.dataset_fusions import FILTER_FUSION, MAP_AND_FILTER_FUSION, MAP_FUSION, ON_BY_DEFAULT, is_map
from simplace.lowering.fusion_utils import OF_DATASETS, FunctionLibrary
from simplace.lowering.make_deterministic import split_for_determinism
from simplace.lowering.reachable_functions import select_reached
from simplace.lowering.rewrite_utils import Rewriting, add_all_sinks, remove_sinks, rewrite_functions
from simplace.program.observation import LoggedGraph
from simplace.program.program import Program

_PIPELINE = "pipeline"  # our name for the function that stands for a dataset's graph
# What the names of the functions begin with that each optimizer makes.
_MADE_BY = {
    MAP_FUSION: FUSED,
    FILTER_FUSION: "fused_predicate",
    MAP_AND_FILTER_FUSION: "fused_map_and_filter_function",
}
_REWRITES = (1, 2)  # a dataset that is sharded between workers or replicas is rewritten once more, before
_MAY_SPLIT = ("ParallelMapDatasetV2", "MapAndBatchDataset", "MapDataset")  # tf.data makes maps parallel, and batches
_NUMBER = re.compile(r"/_\d+$")


class MadeLogs(Protocol):
    """What was logged of functions that optimizers made."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of all functions in the log."""

    def find_made(self, function: FunctionDef, name: str) -> Sequence[LoggedGraph]:
        """Return the logs of that name which fit a function."""


@dataclass(frozen=True, slots=True)
class FusedFunction:
    """Record of a function that TensorFlow made, and placed, and of the functions that it is made of.

    `instead_of` is a function of a dataset that would have run in its place.
    """

    program: Program
    parts: tuple[str, ...]
    instead_of: str


def fits_log(function: FunctionDef, logged: Set[str]) -> bool:
    """Return whether nodes that were logged are those of a function, with what its branches and calls became."""
    own = {node.name for node in function.nodes}.union(arg.name for arg in function.inputs)
    calls = {node.name for node in function.nodes if is_partitioned_call(node.op)}  # which leave nothing when inlined
    opened = [node.name for node in function.nodes if _has_functions(node)]
    inner = re.compile(rf"(Func/)?({'|'.join(map(re.escape, opened))})/(?!_\d+(/|$))") if opened else None
    rest = [name for name in logged - own if not name.endswith("_RetVal")]
    return own - calls <= logged and all(inner is not None and inner.match(name) for name in rest)


def _has_functions(node: NodeDef) -> bool:
    return any(isinstance(value, FuncRef) for value in node.attrs.values())


def find_fused(callees: Iterable[Program], logged: MadeLogs, table: KernelTable) -> list[FusedFunction]:
    """Return what TensorFlow made of functions that datasets call, as far as its log has it, each once."""
    programs = {each.function: each for each in reversed([*callees]) if each.caller is not None}
    names: dict[str, list[str]] = {}
    for name in logged.names:
        names.setdefault(_NUMBER.sub("", name), []).append(name)
    asked = [key for key, start in _MADE_BY.items() if any(base.startswith(start) for base in names)]
    is_split = any(base.endswith(SPLITS) for base in names)
    taken = {_find_upstream(each) for each in programs.values()}
    found: dict[tuple[str, ...], FusedFunction] = {}
    for program in programs.values():
        is_last = program.function not in taken  # what is made of a part of a chain is made of the whole chain, too
        chain = _list_chain(program, programs) if asked and is_last else ()
        made: list[_Made] = []
        for times in _REWRITES:
            if len(chain) > 1:
                made += _fuse_chain(chain, asked, times, table, names)
            if is_split and program.caller is not None and program.caller.op in _MAY_SPLIT:
                made += _split_function(program, times, table)
        for each in made:
            for name in names.get(_NUMBER.sub("", each.function.name), ()):
                if logged.find_made(each.function, name):
                    fused = _make_fused(replace(each.function, name=name), each)
                    found.setdefault((name, *fused.parts), fused)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Made:
    """A function that optimizers made of those of a chain of programs, and all functions as they are then.

    `origins` has the function and the node that each of its nodes was, `parts` those of the chain that it is made of.
    The last `captured` arguments are those of the chain's last function.
    """

    function: FunctionDef
    chain: tuple[Program, ...]
    parts: tuple[str, ...]
    library: Mapping[str, FunctionDef]
    origins: Mapping[str, tuple[str, str]]
    captured: int = 0


def _list_chain(program: Program, programs: Mapping[str | None, Program]) -> tuple[Program, ...]:
    """Return the programs of maps and filters that follow each other directly up to one."""
    chain: list[Program] = []
    last: Program | None = program
    known: set[str | None] = set()
    while last is not None and last.function not in known and _may_be_fused(last):
        known.add(last.function)
        chain.append(last)
        last = programs.get(_find_upstream(last))
    return tuple(reversed(chain))


def _may_be_fused(program: Program) -> bool:
    caller = program.caller
    return caller is not None and not caller.captured and (is_map(caller.op) or caller.op == "FilterDataset")


def _find_upstream(program: Program) -> str:
    """Return the function that one may be fused to, "" for none."""
    return program.caller.upstream if program.caller is not None and _may_be_fused(program) else ""


def _fuse_chain(
    chain: tuple[Program, ...], asked: Sequence[str], times: int, table: KernelTable, logged: Container[str]
) -> Iterator[_Made]:
    """Fuse the functions of a pipeline by each choice of optimizers; its maps may have been made parallel before."""
    functions: dict[str, FunctionDef] = {}
    for program in chain:
        functions.update(program.graph.library)
    has_maps = any(program.caller is not None and is_map(program.caller.op) for program in chain)
    for op in ("MapDataset", "ParallelMapDatasetV2") if has_maps else ("MapDataset",):
        graph = GraphDef((), {**functions, _PIPELINE: _make_pipeline(chain, op)}, chain[0].graph.producer)
        for count in range(1, len(asked) + 1):
            for switched in combinations(asked, count):
                made = rewrite_functions(graph, Rewriting(times, (*ON_BY_DEFAULT, *switched)), table)
                origins = _trace_origins(made.added, made.origins)
                for name, function in made.added.items():
                    if _NUMBER.sub("", name) in logged:
                        of = {source for source, _ in origins[name].values()} | _list_called(name, made.added)
                        parts = tuple(each.function for each in chain if each.function in of)
                        yield _Made(function, chain, parts, made.graph.library, origins[name])


def _make_pipeline(chain: Sequence[Program], op: str) -> FunctionDef:
    """Return a function that makes the datasets of a chain, each of the one before; its maps are of one op."""
    calls = TensorInfo(DataType.DT_INT64, (), -1)  # AUTOTUNE
    nodes = [NodeDef("calls", "Const", "", (), {"dtype": DataType.DT_INT64, "value": calls})]
    taken = "rows"
    for i, program in enumerate(chain):
        assert program.caller is not None, "it is called by a dataset"
        assert program.function is not None, "it is a function"
        kind, attr = (op, "f") if is_map(program.caller.op) else ("FilterDataset", "predicate")
        inputs = (taken, "calls:output:0") if kind == "ParallelMapDatasetV2" else (taken,)
        nodes.append(NodeDef(f"dataset{i}", kind, "", inputs, {attr: FuncRef(program.function), "Targuments": ()}))
        taken = f"dataset{i}:handle:0"
    variant = DataType.DT_VARIANT
    return FunctionDef(
        name=_PIPELINE,
        inputs=(ArgDef("rows", variant),),
        outputs=(ArgDef("result", variant),),
        nodes=tuple(nodes),
        ret={"result": taken},
        control_ret={},
        control_outputs=(),
        attrs={OF_DATASETS: True},
        arg_attrs={},
    )


def _trace_origins(
    added: Iterable[str], origins: Mapping[str, Mapping[str, tuple[str, str]]]
) -> dict[str, dict[str, tuple[str, str]]]:
    """Return by made function the function of the program and the node there that each of its nodes was, if it was one.

    Those that a function is made of come before it.
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for name in added:
        nodes = origins.get(name, {})
        sources = {node: found[of].get(before) if of in found else (of, before) for node, (of, before) in nodes.items()}
        found[name] = {node: source for node, source in sources.items() if source is not None}
    return found


def _list_called(name: str, added: Mapping[str, FunctionDef]) -> set[str]:
    """Return the functions that a made function calls, also by others that were made."""
    function = added.get(name)
    values = [value for node in function.nodes for value in node.attrs.values()] if function is not None else []
    called = {value.name for value in values if isinstance(value, FuncRef)}
    return called.union(*(_list_called(each, added) for each in called))


def _split_function(program: Program, times: int, table: KernelTable) -> Iterator[_Made]:
    """Split a function of a map, as TensorFlow does where ops must be deterministic."""
    assert program.caller is not None, "it is called by a dataset"
    own = program.function or ""
    functions = add_all_sinks(program.graph.library, times)
    library = FunctionLibrary(functions, len(functions))
    if split_for_determinism(functions[own], program.caller.captured, library, table):
        whole = {name: remove_sinks(each) for name, each in {**functions, **library.added}.items()}
        for name in library.added:
            captured = program.caller.captured
            yield _Made(whole[name], (program,), (own,), whole, library.made_of[name], captured)


def _make_fused(function: FunctionDef, made: _Made) -> FusedFunction:
    base = made.chain[-1] if not made.parts else next(each for each in made.chain if each.function == made.parts[0])
    assert base.caller is not None, "it is called by a dataset"
    captured = base.arg_devices[len(base.arg_devices) - made.captured :]
    devices = (base.scope,) * (len(function.inputs) - made.captured)
    known = {each.function: each.notes for each in made.chain}
    notes = {node: known.get(of, {}).get(of, {}).get(name) for node, (of, name) in made.origins.items()}
    program = replace(
        base,
        name=shown_name(function.name),
        graph=GraphDef((), select_reached(function, made.library), base.graph.producer),
        function=function.name,
        arg_devices=(*devices, *captured),
        notes={**base.notes, function.name: {node: note for node, note in notes.items() if note is not None}},
        caller=replace(base.caller, rewrites=0, is_made=True),
    )
    return FusedFunction(program, made.parts, base.function or "")
