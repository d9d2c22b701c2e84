"""Place the functions that kernels call, and find what TensorFlow logged of them, at some time on some thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from simplace.compare.fused_functions import find_fused, fits_log
from simplace.devices.device_set import DeviceSet
from simplace.graph.function_names import drop_specialization
from simplace.graph.node_def import FunctionDef
from simplace.graph.op_kinds import is_arg
from simplace.kernels.registry import KernelTable
from simplace.lowering.dataset_fusions import SORTING, hands_on_arguments, is_map
from simplace.lowering.reachable_functions import select_reached
from simplace.lowering.rewrite_utils import (
    FUNCTION_OPTIMIZER,
    META_OPTIMIZER,
    TFG_OPTIMIZER,
    Rewriting,
    count_sinks,
    find_sinking,
    find_switched,
    may_sort,
    was_sunk,
)
from simplace.placement.captured_function import find_captured
from simplace.placement.partitioned_function_ops import find_called
from simplace.placement.placement import Placement
from simplace.program.observation import LoggedGraph, LoggedNode, Observation
from simplace.program.program import Program

Place = Callable[[Program, DeviceSet], Placement]


def place_callees(
    placements: Iterable[Placement], observed: Observation, devices: DeviceSet, table: KernelTable, place: Place
) -> Iterator[tuple[Placement, Sequence[LoggedNode] | None]]:
    """Yield the functions that kernels in placed graphs and eager ops call, each instance once, with its log.

    The log is None for what TensorFlow did not instantiate, or has rewritten in a way that is not replayed.
    """
    logged = LoggedFunctions(observed, table)
    callees: list[tuple[Program, DeviceSet]] = []
    found: dict[tuple[object, ...], tuple[Placement, Sequence[LoggedNode] | None]] = {}
    inlined: set[tuple[object, ...]] = set()  # which may have been found before in a caller that is not there

    def place_all(waiting: list[tuple[Program, DeviceSet]]) -> None:
        while waiting:
            callee, own = waiting.pop(0)
            callees.append((callee, own))
            for instance, log in logged.find_instances(callee):
                assert instance.caller is not None, "somebody calls it"
                sinking = instance.caller.sunk_before, instance.caller.opened
                key = (instance.function, instance.arg_devices, instance.scope, sinking, *_list_nodes(instance))
                is_inlined = log is None and instance.caller.is_inlined
                if key not in (inlined if is_inlined else found):
                    inlined.update([key] if is_inlined else ())
                    placement = place(instance, own)
                    log = logged.choose_log(placement, log)
                    if log is not None and not _fits(placement, log):
                        sorted_instance = _sort_nodes(instance)
                        made = None if sorted_instance is None else place(sorted_instance, own)
                        placement = made if made is not None and _fits(made, log) else placement
                    optimizer = "" if log is None else _find_unreplayed(placement, log)
                    if optimizer:
                        placement, log = _mark_unreplayed(placement, optimizer), None
                    found[key] = placement, log
                    waiting += [(inner, own) for inner in _find_callees(placement, log is not None or is_inlined)]

    waiting = [(each.program, devices) for each in observed.programs if each.program.caller is not None]
    place_all([*waiting, *((callee, each.devices) for each in placements for callee in _find_callees(each))])
    own_devices = {program.function: own for program, own in reversed(callees)}
    fused = find_fused([program for program, _ in callees], logged, table)
    place_all([(each.program, own_devices[each.instead_of]) for each in fused])
    parts = {part for each in fused for part in each.parts}
    # TensorFlow keeps what it has of a name (tf_data_meta_optimizer.cc), so that one takes the place of the others.
    kept = {
        placement.program.function
        for placement, log in found.values()
        if log is not None and _is_made(placement.program)
    }
    for placement, log in found.values():
        if log is None and _is_made(placement.program) and placement.program.function in kept:
            continue
        if log is not None or placement.program.function not in parts or _is_unreplayed(placement):
            yield placement, log


def _list_nodes(program: Program) -> list[str]:
    """Return the names of the nodes of a function and of what it reaches: several functions may have one name.

    Optimizers, and new contexts, make such.
    """
    library = program.graph.library
    return [
        node.name for each in select_reached(library[program.function or ""], library).values() for node in each.nodes
    ]


def _fits(placement: Placement, log: Sequence[LoggedNode]) -> bool:
    return {node.name for node in log} == {node.name for node in placement.nodes}


def _sort_nodes(program: Program) -> Program | None:
    """Return a program whose functions an optimizer has sorted, None where none can or one is known to have done so."""
    caller = program.caller
    if caller is None or not may_sort(Rewriting.of_caller(caller)):
        return None
    return replace(program, caller=replace(caller, switched=(*caller.switched, SORTING[0])))


def _find_unreplayed(placement: Placement, log: Sequence[LoggedNode]) -> str:
    """Return the optimizer that has changed a function in another way than is replayed, as the names tell."""
    assert placement.program.caller is not None, "somebody calls it"
    if _fits(placement, log):
        return ""
    if placement.program.caller.may_be_optimized:
        return META_OPTIMIZER
    return TFG_OPTIMIZER if was_sunk(node.name for node in log) else ""


def _mark_unreplayed(placement: Placement, optimizer: str) -> Placement:
    assert placement.program.caller is not None, "a dataset calls it"
    caller = replace(placement.program.caller, unreplayed=optimizer)
    return replace(placement, program=replace(placement.program, caller=caller))


def _is_made(program: Program) -> bool:
    return program.caller is not None and program.caller.is_made


def _is_unreplayed(placement: Placement) -> bool:
    caller = placement.program.caller
    return caller is not None and bool(caller.unreplayed)


def _find_callees(placement: Placement, is_there: bool = True) -> list[Program]:
    """Return the functions that kernels in a placed graph call; in one that is not there nothing is inlined."""
    called = find_called(placement)
    if not is_there:
        called = [replace(each, caller=replace(each.caller, is_inlined=False)) for each in called if each.caller]
    return [*find_captured(placement), *called]


class LoggedFunctions:
    """Record of the logged placements of functions by name, but for those of the calls that the program itself made."""

    def __init__(self, observed: Observation, table: KernelTable) -> None:
        direct = (each for each in observed.programs if each.program.caller is None)
        called = Counter((each.program.function, tuple(each.log)) for each in direct)
        called.update(observed.placed_again)
        self._table = table
        self._given = {(each.program.function, each.program.arg_devices) for each in observed.programs}
        self._pipelines = _list_pipelines(each.program for each in observed.programs)
        self._by_name: dict[str, list[LoggedGraph]] = {}
        for graph in observed.logged.graphs:
            if graph.times > called[graph.function, graph.nodes]:
                self._by_name.setdefault(graph.function, []).append(graph)
        self._specialized = {own for name in self._by_name if (own := drop_specialization(name)) != name}

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the functions."""
        return list(self._by_name)

    def find_made(self, function: FunctionDef, name: str) -> list[LoggedGraph]:
        """Return the logs of that name which may be of a function that optimizers made: several may have one name."""
        return [each for each in self._by_name.get(name, ()) if fits_log(function, {node.name for node in each.nodes})]

    def choose_log(self, placement: Placement, log: Sequence[LoggedNode] | None) -> Sequence[LoggedNode] | None:
        """Return the log that has the nodes of a placed function, if there is one, or else the one given.

        Of a function that optimizers made it is None then: the logs of its name may be of others.
        """
        if log is None:
            return None
        own = {node.name for node in placement.nodes}
        graphs = self._by_name.get(placement.program.function or "", ())
        logs = (log, *(graph.nodes for graph in graphs))
        fitting = (each for each in logs if own == {node.name for node in each})
        return next(fitting, None if _is_made(placement.program) else log)

    def find_instances(self, program: Program) -> Iterator[tuple[Program, Sequence[LoggedNode] | None]]:
        """Yield a dataset's function as TensorFlow instantiated it, each time with its log; None if it never did.

        A map that only hands on elements is left out (noop_elimination.cc), and its function with it.
        Where there are several instances, the log says where the arguments of each are. A dataset may turn the
        rewriting of its functions off, and one that is sharded between workers is rewritten once more.
        """
        assert program.function is not None, "a dataset calls a function"
        assert program.caller is not None, "somebody calls it"
        function = program.graph.library[program.function]
        is_made = program.caller.is_made
        logged = self.find_made(function, function.name) if is_made else self._by_name.get(function.name, [])
        if not program.caller.rewrites and not is_made:  # what was rewritten is another caller's
            logged = [graph for graph in logged if not _count_rewrites(program, graph)]
        for graph in logged:
            rewrites = _count_rewrites(program, graph) if program.caller.rewrites else 0
            ops = {node.name: node.op for node in graph.nodes}
            switched, unreplayed = find_switched(program.graph, function.name, rewrites, ops, self._table)
            how = replace(Rewriting.of_caller(program.caller), times=rewrites, switched=switched)
            if not unreplayed and not is_made:
                beside = self._find_beside(program)
                how, unreplayed = find_sinking(program.graph, function.name, how, ops, self._table, beside)
            caller = replace(
                program.caller,
                rewrites=rewrites,
                switched=how.switched,
                unreplayed=unreplayed,
                sunk_before=how.sunk_before,
                opened=how.opened,
            )
            arguments = _list_arg_devices(program, graph) if len(logged) > 1 else program.arg_devices
            if arguments != program.arg_devices and (function.name, arguments) in self._given:
                continue  # the instance of another iterator, on another device
            yield replace(program, arg_devices=arguments, caller=caller), None if caller.unreplayed else graph.nodes
        if not logged and not _is_left_out(program):
            is_specialized = function.name in self._specialized
            caller = replace(program.caller, unreplayed=FUNCTION_OPTIMIZER) if is_specialized else program.caller
            yield replace(program, caller=caller), None

    def _find_beside(self, program: Program) -> list[Set[str]]:
        """Return the functions that may be in one graph with a dataset's: of a graph's node, or of pipelines."""
        assert program.caller is not None, "somebody calls it"
        beside = [frozenset(program.caller.beside)] if program.caller.beside else []
        return [*beside, *(names for names in self._pipelines if program.function in names)]


def _list_pipelines(programs: Iterable[Program]) -> list[Set[str]]:
    """Return the functions of each dataset that an eager op makes with those of the datasets that it comes from."""
    eager = {each.function: each for each in programs if each.kind == "dataset"}
    found: dict[Set[str], None] = {}
    for program in eager.values():
        names: set[str] = set()
        last: Program | None = program
        while last is not None and last.function not in names:
            names |= last.graph.library.keys()
            last = eager.get(last.caller.upstream) if last.caller is not None else None
        found[frozenset(names)] = None
    return list(found)


def _is_left_out(program: Program) -> bool:
    """Return whether TensorFlow leaves out the map that would call a function, so that nothing instantiates it."""
    function = program.graph.library[program.function or ""]
    return program.caller is not None and is_map(program.caller.op) and hands_on_arguments(function)


def _count_rewrites(program: Program, graph: LoggedGraph) -> int:
    """Return how often a function was rewritten: each time leaves a sink for each result."""
    function = program.graph.library[program.function or ""]
    sinks = count_sinks(node.name for node in graph.nodes) - count_sinks(node.name for node in function.nodes)
    return sinks // len(function.outputs) if function.outputs else 0


def _list_arg_devices(program: Program, graph: LoggedGraph) -> tuple[str, ...]:
    """Return the devices of the arguments as logged, by which the instances of one function differ."""
    devices = {node.name: node.device for node in graph.nodes if is_arg(node.op)}
    args = program.graph.library[program.function or ""].inputs
    return tuple(devices.get(arg.name, own) for arg, own in zip(args, program.arg_devices, strict=True))
