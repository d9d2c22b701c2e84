from __future__ import annotations

import pytest

from simplace.explain.conflict import find_conflict
from simplace.placement.candidates import Fallback
from simplace.placement.colocation_graph import ColocationEdgeKind, Notice, class_groups, merge_supported_devices
from simplace.placement.kernel_support import Types
from simplace.placement.placement import Placement
from tests.placement.real import CPU0, GPU1, WORLD
from tests.placement.worlds import answer, answers


def groups(placement: Placement) -> list[list[str]]:
    """List the groups of several nodes by name."""
    names = placement.graph.names
    return [[names[i] for i in members] for members in placement.members.values() if len(members) > 1]


@pytest.mark.parametrize(
    ("new", "old", "both"),
    [
        ((("GPU", 0), ("CPU", 0)), (("GPU", 0), ("CPU", 0)), (("GPU", 0), ("CPU", 0))),
        ((("CPU", 2), ("GPU", 1)), (("GPU", 0), ("CPU", 0)), (("CPU", 2), ("GPU", 1))),
        ((("GPU", 0), ("CPU", 0)), (("CPU", 2), ("GPU", 1)), (("CPU", 2), ("GPU", 1))),
        ((("CPU", 2), ("GPU", 1)), (("CPU", 5), ("GPU", 3)), (("CPU", 2), ("GPU", 1))),
        ((("CPU", 2), ("GPU", 1)), (("GPU", 2), ("CPU", 1)), (("GPU", 0), ("CPU", 0))),
        ((("CPU", 2), ("GPU", 1)), (("GPU", 2),), (("GPU", 1),)),
        ((("CPU", 2), ("GPU", 0)), (("GPU", 0),), (("GPU", 0),)),
        ((("CPU", 0),), (("GPU", 0),), ()),
    ],
)
def test_types_of_two_groups_intersect(new: Types, old: Types, both: Types) -> None:
    assert merge_supported_devices(new, old) == both


@pytest.mark.parametrize(
    ("value", "names"),
    [((b"loc:@a", b"loc:@b"), ["a", "b"]), ((b"a",), []), (b"loc:@a", []), ((), []), (None, [])],
)
def test_colocation_attribute_lists_groups(value: object, names: list[str]) -> None:
    assert class_groups({"_class": value}) == names
    assert class_groups({}) == []


def test_group_may_be_named_after_no_node() -> None:
    placement = WORLD.place(
        """
        a = Source()
        b = Neg(a) [_class=["loc:@somewhere"]]
        c = NegC(a) [_class=["loc:@somewhere"]]
        """
    )
    assert groups(placement) == [["b", "c"]]
    assert answer(placement) == answers("a b c = CPU:0")
    assert [(join.kind, join.group) for join in placement.groups.colocation_edges] == [
        (ColocationEdgeKind.CLASS, "somewhere")
    ]


def test_resource_edges_join_by_edge_number() -> None:
    placement = WORLD.place("h = Handle()\ng = Handle()\nb = Both(h, g)\nr = Read(h)")
    names = placement.graph.names
    assert groups(placement) == [["h", "g", "b", "r"]]
    assert [(join.kind, names[join.first], names[join.second]) for join in placement.groups.colocation_edges] == [
        (ColocationEdgeKind.RESOURCE, "h", "b"),
        (ColocationEdgeKind.RESOURCE, "g", "b"),
        (ColocationEdgeKind.RESOURCE, "h", "r"),
    ]


def test_dropped_request_leaves_a_notice() -> None:
    placement = WORLD.place("h = Handle() @/GPU:1\nr = Read(h) @/CPU:0", soft=False)
    ids = placement.graph.ids
    assert placement.groups.notices == [Notice(ids["r"], ids["h"], "/device:CPU:0", "/device:GPU:1")]
    assert answer(placement) == answers("h r = GPU:1")


def test_dropped_colocation_leaves_a_notice() -> None:
    placement = WORLD.place('a = SourceC()\nh = Handle()\nr = ReadG(h) [_class=["loc:@a"]]')
    (notice,) = placement.groups.notices
    names = placement.graph.names
    assert (names[notice.node], names[notice.other], notice.group, notice.dropped) == ("r", "a", "a", "")
    assert notice.why.startswith(
        "Cannot colocate nodes {{colocation_node r}} and {{colocation_node a}} because no device type supports"
    )
    assert answer(placement) == answers("a = CPU:0; h r = GPU:0")


def test_failed_join_still_leaves_the_merged_request() -> None:
    """ColocateNodes merges the devices before it finds that no type is common, and TensorFlow goes on with that."""
    placement = WORLD.place(
        """
        a = Source()
        n = NegC(a) [_class=["loc:@g"]] @/CPU:0
        h = Handle()
        r = ReadG(h) [_class=["loc:@g"]]
        """
    )
    candidates = placement.decisions[placement.graph.ids["r"]].candidates
    assert candidates is not None
    assert (str(candidates.constraints.requested), candidates.fallback) == ("/device:CPU:0", Fallback.REQUEST_DROPPED)
    assert answer(placement) == answers("a n = CPU:0; h r = GPU:0")


def test_clash_names_both_ends_and_their_wishes() -> None:
    placement = WORLD.place("a = Handle() @/CPU:0\nb = Handle() @/GPU:1\nc = Both(a, b)")
    ids = placement.graph.ids
    assert placement.refusal is not None
    assert (placement.refusal.code, placement.refusal.node) == ("INVALID_ARGUMENT", ids["c"])
    found = find_conflict(placement)
    assert found is not None
    assert [(constraint.node, constraint.device) for constraint in found.constraints] == [
        (ids["b"], "/GPU:1"),
        (ids["a"], "/CPU:0"),
    ]
    assert [(join.first, join.second) for join in found.path] == [(ids["b"], ids["c"]), (ids["a"], ids["c"])]


def test_group_is_fixed_where_its_first_node_is_put() -> None:
    placement = WORLD.place(f"a = Handle() !{GPU1}\nb = Read(a)\nc = Read(a)\nd = Neg(c)")
    assert answer(placement) == answers("a b c = GPU:1; d = GPU:0")


def test_string_lists_keep_their_users_on_the_host() -> None:
    placement = WORLD.place(
        """
        s = TensorListReserve() [element_dtype=string]
        f = TensorListReserve() [element_dtype=float]
        kept = TensorListStack(s)
        free = TensorListStack(f)
        passed = Keep(s)
        behind = Keep(passed)
        """
    )
    assert answer(placement) == answers("kept passed behind s = CPU:0; free f = GPU:0")
    assert {placement.graph.names[i] for i in placement.groups.host_only} == {"kept", "passed", "behind"}


def test_lists_of_lists_are_searched_through() -> None:
    placement = WORLD.place(
        """
        s = TensorListReserve() [element_dtype=string]
        outer = TensorListReserve() [element_dtype=variant]
        pushed = TensorListPushBack(outer, s) [element_dtype=variant]
        use = Keep(pushed)
        """
    )
    assert answer(placement) == answers("s outer pushed use = CPU:0")


def test_fixed_device_wins_over_what_a_list_holds() -> None:
    text = f"s = TensorListReserve() [element_dtype=string] !{CPU0}\nk = Keep(s) !{GPU1}\nm = Keep(k)"
    assert answer(WORLD.place(text)) == answers("s m = CPU:0; k = GPU:1")
