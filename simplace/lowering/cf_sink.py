"""Move ops into the one branch that takes what they compute, as Grappler does with the functions of a dataset's graph.

Mirrors cf_sink/pass.cc of tensorflow/core/transforms (with MLIR's `controlFlowSink`) in the pipeline that
grappler/optimizers/tfg_passes_builder.cc makes for whole graphs: `DefaultModuleGrapplerPipeline`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplace.graph.node_def import FunctionDef
from simplace.graph.op_kinds import FUNCTIONAL
from simplace.kernels.registry import KernelTable
from simplace.lowering.branch_regions import Block, Module, NotOpenedError, Op, Source
from simplace.lowering.op_signatures import Signatures


@dataclass(frozen=True, slots=True)
class SunkFunctions:
    """Record of functions whose ops were moved: the changed and the new ones, and what each of their nodes was."""

    library: Mapping[str, FunctionDef]
    made_of: Mapping[str, Mapping[str, tuple[str, str]]]


def sink_into_branches(
    library: Mapping[str, FunctionDef], table: KernelTable, *, opened: Sequence[str] = ()
) -> SunkFunctions:
    """Return the functions that differ once ops are moved into the branch that alone takes what they compute.

    A branch that takes its arguments in another order than they are given, or not all of them, is made anew, too, and
    a branch or a loop that nothing takes is left out.
    TensorFlow opens functions in the order of a hash map, which names the nodes of nested branches: those that are
    `opened` first, in that order, then the others as the library has them.
    """
    if not any(node.op in FUNCTIONAL for function in library.values() for node in function.nodes):
        return SunkFunctions({}, {})
    ordered = {name: library[name] for name in opened if name in library} | dict(library)
    module = Module(ordered, Signatures(table, library))
    try:
        module.open_branches()
        for block in module.blocks.values():
            _Sinker(block, module, table).sink()
        module.close_branches()
    except NotOpenedError:
        return SunkFunctions({}, {})
    functions, made_of = module.write_functions()
    changed = {
        name: function
        for name, function in functions.items()
        if name not in library or function.nodes != library[name].nodes
    }
    return SunkFunctions(changed, {name: made_of[name] for name in changed})


class _Sinker:
    """Move ops of one function."""

    def __init__(self, block: Block, module: Module, table: KernelTable) -> None:
        self._block = block
        self._module = module
        self._table = table
        self._within: dict[Op, tuple[Block, ...]] = {}  # the regions that an op is in, the function first
        self._ends: dict[Block, tuple[Block, ...]] = {}  # the same of what a region returns
        self._users: dict[Source, list[Op | Block]] = {}
        self._enter(block, ())

    def sink(self) -> None:
        """Move what can be moved into each region, those of inner branches first."""
        for op in _walk_inner_first(self._block):
            for region in op.regions:
                self._sink_into(op, region)

    def _enter(self, block: Block, outer: tuple[Block, ...]) -> None:
        within = self._ends[block] = (*outer, block)
        for op in block.ops:
            self._within[op] = within
            for source in {*(source for source, _ in op.data), *op.after}:
                self._users.setdefault(source, []).append(op)
            for region in op.regions:
                self._enter(region, within)
        for source in {*(source for source, _ in block.ret.values()), *(source for _, source in block.ends)}:
            self._users.setdefault(source, []).append(block)

    def _sink_into(self, branch: Op, region: Block) -> None:
        stack: list[Op | None] = [*region.ops, None]  # at last what it returns
        while stack:
            user = stack.pop()
            refs = user.data if user is not None else list(region.ret.values())
            after = user.after if user is not None else [source for _, source in region.ends]
            for source in [*(source for source, _ in refs), *after]:
                if isinstance(source, Op) and self._within[source][-1] is not region and self._may_move(source, region):
                    self._within[source][-1].ops.remove(source)
                    region.ops.insert(0, source)
                    self._within[source] = self._ends[region]
                    source.name = f"{source.name}_tfg_cf_sunk_{branch.name}"
                    stack.append(source)

    def _may_move(self, op: Op, region: Block) -> bool:
        if self._module.has_opened(op) or self._is_stateful(op):
            return False
        return all(
            region in (self._within[user] if isinstance(user, Op) else self._ends[user]) for user in self._users[op]
        )

    def _is_stateful(self, op: Op) -> bool:
        return self._table.is_stateful(op.op)  # of a call by its function's name: TensorFlow does not know the op


def _walk_inner_first(block: Block) -> Iterator[Op]:
    for op in list(block.ops):
        for region in op.regions:
            yield from _walk_inner_first(region)
        yield op
