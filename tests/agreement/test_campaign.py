"""Counting what random programs come to."""

from simplace.agreement.campaign import Count
from simplace.agreement.runner import Batch, Outcome, essence


def test_programs_in_a_row_begin_anew_after_a_difference():
    count = Count()
    outcomes = (
        Outcome("p0", "f", 3, 3), Outcome("p1", "f", 3, 2, ("a (Add): ...",)), Outcome("p2", "f", 4, 4, (), True),
        Outcome("p2", "g", 1, 1, (), False, True),
    )  # fmt: skip
    differing = count.add(["p0", "p1", "p2", "p3"], Batch(outcomes, {"p3": "ValueError"}))
    assert differing == ["p1"]
    assert (count.programs, count.placements, count.nodes, count.refused, count.failed_later) == (3, 4, 11, 1, 1)
    assert (count.differing, count.in_a_row, count.not_placed) == (1, 1, 1)


def test_what_tensorflow_places_by_chance_is_counted_apart():
    count = Count()
    batch = Batch((Outcome("p0", "f", 3, 2, ("while (IdentityN): ...",)),), {})
    assert count.add(["p0"], batch, frozenset({"p0"})) == []
    assert (count.programs, count.differing, count.by_chance) == (0, 0, 1)


def test_the_essence_of_a_refusal_leaves_out_hash_orders_only():
    message = (
        "No OpKernel was registered to support Op 'Foo' used by {{node a}} with these attrs: [T=DT_INT32, N=2]\n"
        "Registered devices: [CPU]\nRegistered kernels:\n  device='CPU'; T in [DT_FLOAT]\n\n\t [[a]]"
    )
    assert essence(message) == (
        "No OpKernel was registered to support Op 'Foo' used by {{node a}}Registered devices: [CPU]\n\t [[a]]"
    )
