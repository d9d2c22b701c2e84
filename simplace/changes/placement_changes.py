"""Compare two placements of the same program: what moved, because of which node, and which copies came and went.

Nodes are matched by name, arguments that are variables by the variable. A moved node that took its device over from
another moved node follows that one; a chain of such steps ends at a root, whose own decision changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from simplace.changes.eager_changes import EagerChanges, compare_eager_ops
from simplace.changes.layer_kernels import LayerKernel, compare_layer_kernels
from simplace.explain import reasons as why
from simplace.graph.op_kinds import is_arg
from simplace.partition.transfers import Copy
from simplace.placement.placement import Placement
from simplace.result import Placed, Result

Given = Literal[
    "request", "op", "call", "argument", "device gone", "device new", "kernels", "group", "soft placement", "rules", ""
]


@dataclass(frozen=True, slots=True)
class Move:
    """Record of a node that both place, on different devices (full names); `before` and `after` are its two ids.

    `root` is the moved node whose decision it follows in the end, its own name where it follows none, and `how` is
    how it follows the next node on the way there ("" for a root).
    """

    name: str
    op: str
    before: int
    after: int
    source: str
    target: str
    root: str = ""
    how: why.Via = ""


@dataclass(frozen=True, slots=True)
class MoveCause:
    """Record of the roots that moved alike, in the order of TensorFlow's decisions, and the nodes that follow them.

    `given` names what the decision of the first root is made of and what differs between the two placements ("": no
    single fact does).
    """

    given: Given
    roots: tuple[Move, ...]
    colocated: tuple[Move, ...] = ()
    propagated: tuple[Move, ...] = ()

    @property
    def moves(self) -> int:
        """Count all nodes that this cause moves."""
        return len(self.roots) + len(self.colocated) + len(self.propagated)


@dataclass(frozen=True)
class ProgramChanges:
    """Record of what differs between two placements of one program.

    `moves` are in the order in which TensorFlow decides, `causes` by their first root. `only_before` and `only_after`
    name the nodes that one graph lacks; both are empty where either placement was refused. `compared` counts the
    nodes that both place.
    """

    before: Placed
    after: Placed
    moves: tuple[Move, ...]
    causes: tuple[MoveCause, ...]
    compared: int
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the program's name, that of the first where they differ."""
        return self.before.name

    @property
    def title(self) -> str:
        """Return the name that a user knows the program by, that of the first where they differ."""
        return self.before.title

    @property
    def refusals(self) -> tuple[str, str]:
        """Return the status codes of the two placements, "" for one that TensorFlow does not refuse."""
        refused = (self.before.placement.refusal, self.after.placement.refusal)
        return (refused[0].code if refused[0] else "", refused[1].code if refused[1] else "")

    @property
    def differs(self) -> bool:
        """Return whether anything differs."""
        codes = self.refusals
        return bool(self.moves or self.only_before or self.only_after) or codes[0] != codes[1]

    @cached_property
    def layers(self) -> tuple[LayerKernel, ...]:
        """List the layers that run as one op on one side and as a loop on the other."""
        return compare_layer_kernels(self.before.placement, self.after.placement)

    @cached_property
    def copies_lost(self) -> tuple[Copy, ...]:
        """List the copies that the second placement does without."""
        return _subtract_copies(self.before.copies, self.after.copies)

    @cached_property
    def copies_gained(self) -> tuple[Copy, ...]:
        """List the copies that only the second placement makes."""
        return _subtract_copies(self.after.copies, self.before.copies)


_Keyed = dict[tuple[str, int], Placed]  # by a program's name or role, and how many of that name came before


@dataclass(frozen=True)
class Changes:
    """Compare two results, program by program.

    Programs are matched by name (steps of Keras by what they are to it), then by the order of their first call; two
    results of one program each are compared whatever their names.
    """

    before: Result
    after: Result

    @cached_property
    def programs(self) -> tuple[ProgramChanges, ...]:
        """List the programs that both have, in the order of the first."""
        ours, theirs = self._keyed
        return tuple(compare_programs(ours[key], theirs[key]) for key in ours if key in theirs)

    @property
    def only_before(self) -> tuple[Placed, ...]:
        """List the programs of the first that the second lacks."""
        ours, theirs = self._keyed
        return tuple(placed for key, placed in ours.items() if key not in theirs)

    @property
    def only_after(self) -> tuple[Placed, ...]:
        """List the programs that only the second has."""
        ours, theirs = self._keyed
        return tuple(placed for key, placed in theirs.items() if key not in ours)

    @cached_property
    def eager(self) -> EagerChanges:
        """Compare what ran outside of functions; a what-if, which runs nothing, leaves that as it is."""
        if self.before.eager is self.after.eager:
            return EagerChanges((), 0)
        return compare_eager_ops(self.before.eager, self.after.eager)

    @cached_property
    def _keyed(self) -> tuple[_Keyed, _Keyed]:
        ours, theirs = _by_name(self.before.programs), _by_name(self.after.programs)
        if len(ours) == len(theirs) == 1:
            theirs = dict(zip(ours, theirs.values(), strict=True))
        return ours, theirs

    @property
    def differs(self) -> bool:
        """Return whether anything differs: a device, a node, a program, an eager op or a refusal."""
        lacking = bool(self.only_before or self.only_after)
        return lacking or bool(self.eager.moves) or any(change.differs for change in self.programs)


def compare_programs(before: Placed, after: Placed) -> ProgramChanges:
    """Compare two placements of one program."""
    old, new = before.placement, after.placement
    ours, theirs = _map_ids(old), _map_ids(new)
    pairs = {node: ours[key] for key, node in theirs.items() if key in ours}
    moved = _find_moves(old, new, pairs)
    tracer = _Tracer(old, new, moved)
    moves = tuple(tracer.traced(move) for move in moved.values())
    compared = sum(1 for node, was in pairs.items() if node in new.decisions and was in old.decisions)
    refused = old.refusal is not None or new.refusal is not None
    return ProgramChanges(
        before,
        after,
        moves,
        _group_causes(old, new, moves),
        compared,
        () if refused else tuple(old.graph.names[i] for key, i in ours.items() if key not in theirs),
        () if refused else tuple(new.graph.names[i] for key, i in theirs.items() if key not in ours),
    )


def _by_name(programs: Iterable[Placed]) -> _Keyed:
    """Key programs by name, or by what they are to their user, and by how many of that name came before."""
    seen: dict[str, int] = {}
    keyed: _Keyed = {}
    for placed in programs:
        name = placed.placement.program.known_as or placed.name
        number = seen[name] = seen.get(name, -1) + 1
        keyed[name, number] = placed
    return keyed


def _map_ids(placement: Placement) -> dict[str, int]:
    """Map the key that a node is matched by to its id; no node's name contains a space."""
    names, ids = placement.graph.names, {}
    for node in placement.graph.op_ids:
        variable = placement.notes(node).variable
        key = f"variable {variable}" if variable and is_arg(placement.graph.ops[node]) else names[node]
        ids[key if key not in ids else names[node]] = node
    return ids


def _find_moves(old: Placement, new: Placement, pairs: Mapping[int, int]) -> dict[int, Move]:
    """Map the nodes that moved to their moves, in the order of the second placement's decisions."""
    moves = {}
    for node in new.order:
        was = pairs.get(node, -1)
        source, target = old.device(was), new.device(node)
        if source and source != target:
            moves[node] = Move(new.graph.names[node], new.graph.ops[node], was, node, source, target)
    return moves


class _Tracer:
    """Find the node that each moved node follows in the end; nodes are those of the second placement."""

    def __init__(self, old: Placement, new: Placement, moved: Mapping[int, Move]) -> None:
        self._old = old
        self._new = new
        self._moved = moved
        self._now = {move.before: node for node, move in moved.items()}
        self._parents: dict[int, tuple[int, why.Via]] = {}
        self._roots: dict[int, int] = {}

    def traced(self, move: Move) -> Move:
        """Return the move with its root."""
        root = self._root(move.after)
        how = "" if root == move.after else self._parent(move.after)[1]
        return replace(move, root=self._moved[root].name, how=how)

    def _root(self, node: int) -> int:
        way: dict[int, None] = {}
        while node not in self._roots and node not in way:
            way[node] = None
            node = self._parent(node)[0]
        goal = self._roots[node] if node in self._roots else self._first_of_ring(node)
        for passed in way:
            self._roots[passed] = goal
        return goal

    def _first_of_ring(self, node: int) -> int:
        """Return the first one decided of nodes that follow each other in a cycle, such as members of one group."""
        ring = [node]
        while (after := self._parent(ring[-1])[0]) != node:
            ring.append(after)
        return min(ring, key=self._new.rank.__getitem__)

    def _parent(self, node: int) -> tuple[int, why.Via]:
        """Return the moved node that a moved node follows, after the move or else before it; itself for none."""
        if node not in self._parents:
            after = why.find_reason(self._new, node)
            before = why.find_reason(self._old, self._moved[node].before)
            found: tuple[int, why.Via] = (node, "")
            if after.follows in self._moved and after.follows != node:
                found = after.follows, after.via
            elif self._now.get(before.follows, node) != node:
                found = self._now[before.follows], before.via
            self._parents[node] = found
        return self._parents[node]


def _group_causes(old: Placement, new: Placement, moves: Iterable[Move]) -> tuple[MoveCause, ...]:
    """Group roots that moved alike: between the same devices, for the same kinds of reasons."""
    families: dict[tuple[object, ...], list[Move]] = {}
    followers: dict[str, list[Move]] = {}
    for move in moves:
        if move.how:
            followers.setdefault(move.root, []).append(move)
            continue
        kinds = (type(why.find_reason(old, move.before)), type(why.find_reason(new, move.after)))
        asked = (old.graph.requested[move.before], new.graph.requested[move.after])
        key = (move.source, move.target, kinds, asked, _find_given(old, new, move))
        families.setdefault(key, []).append(move)
    return tuple(_make_cause(_find_given(old, new, roots[0]), roots, followers) for roots in families.values())


def _make_cause(given: Given, roots: list[Move], followers: Mapping[str, list[Move]]) -> MoveCause:
    after = [move for root in roots for move in followers.get(root.name, ())]
    colocated = tuple(move for move in after if move.how == "colocation")
    return MoveCause(given, tuple(roots), colocated, tuple(move for move in after if move.how == "propagation"))


def _find_given(old: Placement, new: Placement, move: Move) -> Given:
    """Return which of the facts behind a decision differs, the nearest to the program first."""
    before, after = move.before, move.after
    reasons = (why.find_reason(old, before), why.find_reason(new, after))
    if old.graph.requested[before] != new.graph.requested[after]:
        return "request"
    if old.graph.ops[before] != new.graph.ops[after]:
        return "op"
    if any(isinstance(reason, why.Argument) for reason in reasons):
        return "argument"
    if old.default != new.default and any(isinstance(one, why.DefaultDevice | why.OnlyKernel) for one in reasons):
        return "call"
    if move.source not in new.devices.by_name:
        return "device gone"
    if move.target not in old.devices.by_name:
        return "device new"
    if _list_types(old, before) != _list_types(new, after):
        return "kernels"
    if _name_group(old, before) != _name_group(new, after):
        return "group"
    if old.soft_placement != new.soft_placement:
        return "soft placement"
    return "rules" if _get_version(old) != _get_version(new) else ""


def _list_types(placement: Placement, node: int) -> set[str]:
    return {kind for kind, _ in placement.groups.own_types[node]}


def _name_group(placement: Placement, node: int) -> set[str]:
    return {placement.graph.names[member] for member in why.list_group_members(placement, node)}


def _get_version(placement: Placement) -> str:
    return placement.groups.support.table.version


def _subtract_copies(copies: Iterable[Copy], others: Iterable[Copy]) -> tuple[Copy, ...]:
    known = {_make_key(copy) for copy in others}
    return tuple(copy for copy in copies if _make_key(copy) not in known)


def _make_key(copy: Copy) -> tuple[str, str, str, str, str]:
    return copy.tensor, copy.source, copy.target, copy.source_memory, copy.target_memory
