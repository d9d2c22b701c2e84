"""Open branches and loops as regions of the function that has them, and make functions of regions again.

Mirrors functional_to_region/impl.cc and region_to_functional/impl.cc of tensorflow/core/transforms. A loop without
branches stays as it is: TensorFlow finds its functions equal to its regions, and takes them again.

Stateless branches and loops that nothing takes are left out. MLIR's greedy driver, which applies both passes, erases
what is dead; it does so only with ops that the dialect declares, and these are all that it declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from simplace.graph.dtypes import DataType
from simplace.graph.node_def import ArgDef, FuncRef, FunctionDef, NodeDef, TensorInfo
from simplace.graph.op_kinds import CASES, IFS, WHILES
from simplace.lowering.op_signatures import Signatures

_MAX_ITERATIONS = 16  # functional_to_region/pass.cc
_BRANCHES = ("then_branch", "else_branch")
_LOOP = ("cond", "body")
_CONDITION = "while_cond_function"
_CAPTURED = "_mlir_const_capture_"


class NotOpenedError(Exception):
    """Tell that TensorFlow opens functions here in a way that is not mirrored."""


@dataclass(slots=True, eq=False)
class Arg:
    """An argument of a function, or of a loop's region: it is named by what the loop takes in its place, then."""

    name: str
    dtype: DataType
    loop: Op | None = None
    number: int = 0


@dataclass(slots=True, eq=False)
class Op:
    """A node: what it takes and runs after, its regions, and of which function's node it was made."""

    name: str
    op: str
    device: str
    attrs: Mapping[str, Any]
    made_of: tuple[str, str] | None
    data: list[Ref] = field(default_factory=list)
    after: list[Source] = field(default_factory=list)
    regions: list[Block] = field(default_factory=list)


Source = Op | Arg
Ref = tuple[Source, str]  # with the name of the output, and its number, "" for an argument


@dataclass(slots=True, eq=False)
class Block:
    """The nodes of a function, or of a region that was made of one, with what it returns and runs to its end."""

    function: FunctionDef
    ops: list[Op]
    args: list[Arg]
    ret: dict[str, Ref]
    ends: list[tuple[str, Source]]

    def walk(self) -> Iterator[Op]:
        """Yield the nodes, each before those of its regions."""
        for op in list(self.ops):
            yield op
            for region in op.regions:
                yield from region.walk()

    def find_used(self) -> set[Source]:
        """Return what is taken or waited for here, also by the nodes of regions."""
        found = {source for source, _ in self.ret.values()}.union(source for _, source in self.ends)
        for op in self.ops:
            found.update((source for source, _ in op.data), op.after, *(region.find_used() for region in op.regions))
        return found

    def remove(self, ops: Set[Op]) -> None:
        """Remove nodes, also those of regions."""
        self.ops = [op for op in self.ops if op not in ops]
        for op in self.ops:
            for region in op.regions:
                region.remove(ops)

    @property
    def has_regions(self) -> bool:
        """Return whether a node itself has regions."""
        return any(op.regions for op in self.ops)


class Module:
    """The functions of a library, opened."""

    def __init__(self, library: Mapping[str, FunctionDef], signatures: Signatures) -> None:
        self.blocks = {name: read_function(function) for name, function in library.items()}
        self._signatures = signatures
        self._branching: dict[str, bool] = {}

    def open_branches(self) -> None:
        """Make regions of branches, and of loops with branches, each with the nodes that its function has then."""
        for _ in range(_MAX_ITERATIONS):
            for block in self.blocks.values():
                self._remove_unused(block)
            found = [op for block in self.blocks.values() for op in block.walk() if self._may_open(op)]
            if not found:
                return
            for op in found:
                self._open(op)
        raise NotOpenedError("branches that are nested too deep, or call themselves")

    def close_branches(self) -> None:
        """Make functions of all regions, the innermost first; one that is as it was is taken again."""
        while any(block.has_regions for block in self.blocks.values()):
            for block in list(self.blocks.values()):
                self._close_in(block)

    def write_functions(self) -> tuple[dict[str, FunctionDef], dict[str, dict[str, tuple[str, str]]]]:
        """Return the functions, and by function and node the function and the node that it was made of."""
        made_of = {
            name: {op.name: op.made_of for op in block.ops if op.made_of is not None}
            for name, block in self.blocks.items()
        }
        return {name: write_function(block) for name, block in self.blocks.items()}, made_of

    def has_opened(self, op: Op) -> bool:
        """Return whether TensorFlow makes regions of what a node calls: also of the functions of a loop."""
        return bool(op.regions) or (op.op in WHILES and self._finds_called(op))

    def _remove_unused(self, block: Block) -> None:
        """Remove the branches and loops of a function, and of its regions, that nothing takes or waits for."""
        while unused := {op for op in block.walk() if self._may_leave_out(op)} - block.find_used():
            block.remove(unused)

    def _may_leave_out(self, op: Op) -> bool:
        return bool(list_called(op)) and not self._signatures.is_stateful(op.op)

    def _finds_called(self, op: Op) -> bool:
        return all(ref.name in self.blocks for ref in list_called(op))

    def _may_open(self, op: Op) -> bool:
        if op.regions or not list_called(op) or not self._finds_called(op):
            return False
        return op.op not in WHILES or any(self._has_branches(ref.name) for ref in list_called(op))

    def _has_branches(self, name: str) -> bool:
        """Return whether a function of the original library has branches, or a loop with some."""
        if name not in self._branching:
            self._branching[name] = False  # while it is asked by itself
            ops = self.blocks[name].ops
            self._branching[name] = any(op.op not in WHILES or self._may_open(op) for op in ops if list_called(op))
        return self._branching[name]

    def _open(self, op: Op) -> None:
        is_loop = op.op in WHILES
        for i, ref in enumerate(list_called(op)):
            block = self.blocks[ref.name]
            own = [Arg(arg.name, arg.dtype, op, k) for k, arg in enumerate(block.args)] if is_loop else []
            given = [(arg, "") for arg in own] if is_loop else op.data[1:]
            if len(given) != len(block.args):
                raise NotOpenedError("a function with other arguments than it is given")
            region = _clone(block, dict(zip(block.args, given, strict=True)))
            region.args = own
            for inner in region.ops:
                inner.name = f"{inner.name}_tfg_inlined_{op.name}_{i}"
            op.regions.append(region)
        if not is_loop:
            del op.data[1:]

    def _close_in(self, block: Block) -> None:
        for op in list(block.ops):
            if any(region.has_regions for region in op.regions):
                for region in op.regions:
                    self._close_in(region)
            elif op.regions and not any(self.blocks[ref.name].has_regions for ref in list_called(op)):
                self._close(block, op)

    def _close(self, block: Block, op: Op) -> None:
        captured = [] if op.op in WHILES else self._capture(block, op)  # nothing is moved into a loop itself
        called = list_called(op)
        names = _name_all(map(self._name, captured))
        for region in op.regions:
            args = [Arg(name, self._find_type(ref)) for name, ref in zip(names, captured, strict=True)]
            _replace_captured(region, dict(zip(captured, args, strict=True)))
            region.args += args
        equal = [self._is_equal(region, self.blocks[ref.name]) for region, ref in zip(op.regions, called, strict=True)]
        if not all(equal):
            called = [self._outline(op, i, ref) for i, ref in enumerate(called)]
        if op.op in WHILES:
            op.attrs = {**op.attrs, **dict(zip(_LOOP, called, strict=True))}
        else:
            named = {"branches": tuple(called)} if op.op in CASES else dict(zip(_BRANCHES, called, strict=True))
            op.attrs = {**op.attrs, **named, "Tin": tuple(arg.dtype for arg in op.regions[0].args)}
        op.data += captured
        op.regions = []

    def _capture(self, block: Block, op: Op) -> list[Ref]:
        """Return the tensors that regions take from outside of them; a node without one is waited for by a constant."""
        data: dict[Ref, None] = {}
        waits: dict[Op, None] = {}
        for region in op.regions:
            own = {*region.ops}
            for user in [*region.ops, None]:
                refs = user.data if user is not None else list(region.ret.values())
                after = user.after if user is not None else [source for _, source in region.ends]
                data |= {ref: None for ref in refs if ref[0] not in own}
                for source in after:
                    if source not in own:
                        first = self._find_first(source)
                        if first is not None:
                            data[first] = None
                        elif isinstance(source, Op):
                            waits[source] = None
        captured = list(data)
        for i, source in enumerate(waits):
            info = {"value": TensorInfo(DataType.DT_INT32, (), 0), "dtype": DataType.DT_INT32}
            chained = Op(f"{op.name}{_CAPTURED}{i}", "Const", op.device, info, op.made_of, after=[source])
            block.ops.insert(block.ops.index(op), chained)
            for region in op.regions:
                for user in region.ops:
                    user.after = [chained if each is source else each for each in user.after]
                region.ends = [(key, chained if each is source else each) for key, each in region.ends]
            captured.append((chained, "output:0"))
        return captured

    def _outline(self, op: Op, number: int, ref: FuncRef) -> FuncRef:
        """Make a function of a region; return the reference to it."""
        region = op.regions[number]
        scope = "".join(c if c.isalnum() and c.isascii() else "_" for c in op.name)
        name = f"{ref.name}_tfg_region_specialized_{scope}_{number}"
        name = self._make_name(_CONDITION if op.op in WHILES and number == 0 else name)
        results = [self._name_end(source) for _, source in region.ends]
        names = _name_all([*(arg.name for arg in region.args), *results])[len(region.args) :]
        region.ends = list(zip(names, (source for _, source in region.ends), strict=True))
        region.function = replace(region.function, name=name)
        self.blocks[name] = region
        return FuncRef(name, ref.attrs)

    def _make_name(self, base: str) -> str:
        """Return a new name for a function: one that a function inside of another makes, both make."""
        name, number = base, 0
        while name in self.blocks:
            name, number = f"{base}_{number}", number + 1
        return name

    def _name(self, ref: Ref) -> str:
        source, _ = ref
        if isinstance(source, Arg) and source.loop is not None:
            return self._name(source.loop.data[source.number])
        return source.name if isinstance(source, Arg) else f"{source.name}_tfg_result_{self._find_slot(ref)}"

    def _name_end(self, source: Source) -> str:
        if isinstance(source, Arg):
            return self._name((source, ""))
        return f"{source.name}_tfg_result_{len(self._list_outputs(source))}"

    def _list_outputs(self, op: Op) -> tuple[int, ...]:
        return self._signatures.complete(op.op, op.attrs, op.name)[1][1]

    def _find_slot(self, ref: Ref) -> int:
        source, port = ref
        assert isinstance(source, Op), "an argument is one tensor"
        output, _, number = port.partition(":")
        ranges = self._signatures.outputs_of(
            source.op, self._signatures.complete(source.op, source.attrs, source.name)[0]
        )
        return next(start for name, start, _ in ranges if name == output) + int(number or 0)

    def _find_type(self, ref: Ref) -> DataType:
        source, _ = ref
        return source.dtype if isinstance(source, Arg) else DataType(self._list_outputs(source)[self._find_slot(ref)])

    def _find_first(self, source: Source) -> Ref | None:
        """Return the first tensor that an argument or a node gives, None for a node without one."""
        if isinstance(source, Arg):
            return source, ""
        ranges = self._signatures.outputs_of(
            source.op, self._signatures.complete(source.op, source.attrs, source.name)[0]
        )
        return next(((source, f"{name}:0") for name, start, stop in ranges if start < stop), None)

    def _is_equal(self, region: Block, block: Block) -> bool:
        """Return whether a region has the nodes of a function, whatever their names, and takes as many arguments."""
        if [arg.dtype for arg in region.args] != [arg.dtype for arg in block.args] or len(region.ops) != len(block.ops):
            return False
        known: dict[object, object] = dict(
            zip(((a, "") for a in region.args), ((a, "") for a in block.args), strict=True)
        )

        def agree(ours: Sequence[object], theirs: Sequence[object]) -> bool:
            return len(ours) == len(theirs) and all(
                known.setdefault(a, b) == b for a, b in zip(ours, theirs, strict=True)
            )

        for ours, theirs in zip(region.ops, block.ops, strict=True):
            same = (ours.op, ours.device, dict(ours.attrs)) == (theirs.op, theirs.device, dict(theirs.attrs))
            if not same or not agree(ours.data, theirs.data) or not agree(ours.after, theirs.after):
                return False
            if known.setdefault(ours, theirs) is not theirs:
                return False
            first, second = self._find_first(ours), self._find_first(theirs)
            if first is not None and known.setdefault(first, second) != second:
                return False
        ends = [source for _, source in region.ends], [source for _, source in block.ends]
        return agree([*region.ret.values()], [*block.ret.values()]) and agree(*ends)


def list_called(op: Op) -> list[FuncRef]:
    """Return the functions that an If, a Case or a While calls, none for another node."""
    if op.op in CASES:
        called = op.attrs.get("branches", ())
    else:
        called = [op.attrs.get(key) for key in (_BRANCHES if op.op in IFS else _LOOP if op.op in WHILES else ())]
    return [ref for ref in called if isinstance(ref, FuncRef)]


def read_function(function: FunctionDef) -> Block:
    """Return the nodes of a function with what they take."""
    args = {arg.name: Arg(arg.name, arg.dtype) for arg in function.inputs}
    ops = {
        node.name: Op(node.name, node.op, node.device, node.attrs, (function.name, node.name))
        for node in function.nodes
    }
    sources: dict[str, Source] = {**args, **ops}

    def find(text: str) -> Ref:
        name, _, port = text.partition(":")
        return sources[name], "" if name in args else port

    for node in function.nodes:
        ops[node.name].data = [find(text) for text in node.inputs if not text.startswith("^")]
        ops[node.name].after = [sources[text[1:]] for text in node.inputs if text.startswith("^")]
    ret = {key: find(text) for key, text in function.ret.items()}
    ends = [(key, sources[name]) for key, name in function.control_ret.items()]
    return Block(function, list(ops.values()), list(args.values()), ret, ends)


def write_function(block: Block) -> FunctionDef:
    """Return a function that has the nodes."""
    nodes = tuple(
        NodeDef(op.name, op.op, op.device, (*map(_write, op.data), *(f"^{each.name}" for each in op.after)), op.attrs)
        for op in block.ops
    )
    return replace(
        block.function,
        inputs=tuple(ArgDef(arg.name, arg.dtype) for arg in block.args),
        nodes=nodes,
        ret={key: _write(ref) for key, ref in block.ret.items()},
        control_ret={key: source.name for key, source in sorted(block.ends, key=lambda end: end[0])},
        control_outputs=tuple(key for key, _ in block.ends),
        arg_attrs={},
    )


def _write(ref: Ref) -> str:
    source, port = ref
    return f"{source.name}:{port}" if port else source.name


def _clone(block: Block, given: Mapping[Arg, Ref]) -> Block:
    """Return a copy of a function's nodes that take what its arguments are given."""
    refs: dict[Arg, Ref] = dict(given)
    copies: dict[Op, Op] = {}

    def copy_all(inner: Block, args: list[Arg]) -> Block:
        for op in inner.ops:
            copies[op] = Op(op.name, op.op, op.device, op.attrs, op.made_of)
        for op in inner.ops:
            for region in op.regions:
                own = [Arg(arg.name, arg.dtype, copies[op], arg.number) for arg in region.args]
                refs.update({arg: (new, "") for arg, new in zip(region.args, own, strict=True)})
                copies[op].regions.append(copy_all(region, own))
        return Block(inner.function, [copies[op] for op in inner.ops], args, dict(inner.ret), list(inner.ends))

    def take(ref: Ref) -> Ref:
        source, port = ref
        return (copies[source], port) if isinstance(source, Op) else refs[source]

    def connect(old: Block, new: Block) -> None:
        for before, after in zip(old.ops, new.ops, strict=True):
            after.data = [take(ref) for ref in before.data]
            after.after = [take((source, ""))[0] for source in before.after]
            for one, other in zip(before.regions, after.regions, strict=True):
                connect(one, other)
        new.ret = {key: take(ref) for key, ref in old.ret.items()}
        new.ends = [(key, take((source, ""))[0]) for key, source in old.ends]

    made = copy_all(block, [])
    connect(block, made)
    return made


def _replace_captured(region: Block, args: Mapping[Ref, Arg]) -> None:
    """Let nodes take a region's arguments in place of what they are given, and run after them."""
    waits: dict[Source, Source] = {ref[0]: arg for ref, arg in args.items()}

    def take(ref: Ref) -> Ref:
        return (args[ref], "") if ref in args else ref

    for op in region.ops:
        op.data = [take(ref) for ref in op.data]
        op.after = [waits.get(source, source) for source in op.after]
    region.ret = {key: take(ref) for key, ref in region.ret.items()}
    region.ends = [(key, waits.get(source, source)) for key, source in region.ends]


def _name_all(names: Iterable[str]) -> list[str]:
    """Return names of which none is twice (`NameUniquer`)."""
    found: dict[str, None] = {}
    for name in names:
        number, new = 0, name
        while new in found:
            new, number = f"{name}_{number}", number + 1
        found[new] = None
    return list(found)
