"""Counting what random programs come to."""

import datetime
import json

import pytest

from simplace.machine.machine import Machine
from tests.agreement import runner
from tests.agreement.campaign import Count, record, rounds
from tests.agreement.runner import Batch, Outcome, essence


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


def test_a_run_that_goes_on_keeps_its_row(tmp_path):
    path, date = tmp_path / "random.json", datetime.date(2026, 1, 2)
    record(path, date, 7, Count(programs=150, in_a_row=150))
    record(path, date, 8, Count(programs=1))
    record(path, date, 7, Count(programs=300, in_a_row=120, differing=1, ends=["hung"]))
    first, second = json.loads(path.read_text())
    assert (first["seed"], first["programs"]) == (8, 1)
    assert second == {
        "date": "2026-01-02", "seed": 7, "programs": 300, "placements": 0, "refused": 0, "nodes": 0, "differing": 1,
        "in_a_row": 120, "by_chance": 0, "ended": 1,
    }  # fmt: skip


def pretended(differs, ends=""):
    """Stand in for TensorFlow: what `differs` is true of differs, and the process ends in the program named `ends`."""

    def run(programs, machine):
        names = list(programs)
        reached = names[: names.index(ends)] if ends in names else names
        outcomes = [Outcome(name, "f", 1, 1, ("a (Add)",) if differs(name) else ()) for name in reached]
        return Batch(tuple(outcomes), {}, f"ended in {ends}" if ends in names else "", tuple(names[len(reached) :]))

    return run


@pytest.mark.parametrize("jobs", [1, 3])
def test_rounds_come_in_the_order_of_their_seeds(monkeypatch, jobs):
    monkeypatch.setattr(runner, "run", pretended(lambda name: name == "p7", ends="p4"))
    count = Count()
    found = [(part.first_seed, sorted(part.differing)) for part in rounds(3, 6, 2, count, Machine(), jobs)]
    assert found == [(3, []), (5, []), (7, [])], "what only one copy of many does is no difference"
    assert (count.programs, count.in_a_row, count.by_chance, count.ends) == (4, 4, 1, ["ended in p4"])


def test_what_differs_each_time_differs(monkeypatch):
    monkeypatch.setattr(runner, "run", pretended(lambda name: True))
    count = Count()
    found = [sorted(part.differing) for part in rounds(3, 4, 2, count, Machine())]
    assert found == [["p3", "p4"], ["p5", "p6"]]
    assert (count.differing, count.in_a_row) == (4, 0)
