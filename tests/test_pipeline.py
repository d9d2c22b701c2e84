"""The stages of a run, in order, and who is told of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from simplace import pipeline
from simplace.api import PlaceKeywords, SettingKeywords, Settings
from simplace.errors import SimplaceError
from simplace.executor.step_options import StepKeywords, StepOptions
from tests.stages import verify_stage
from tests.worlds import constant, node, place

PAIR = (constant("a", (2,), "/cpu:0"), node("b", "Neg", "a", device="/gpu:0"))


def test_who_watches_is_told_of_each_stage_in_order() -> None:
    seen: list[str] = []
    with pipeline.watched_by(lambda stage, record: seen.append(f"{stage}: {type(record).__name__}")):
        pipeline.simulate_step(place(*PAIR).placed, StepOptions())
    assert seen == [
        "lower: Graph", "place: Placement",
        "partition: PartitionedGraph", "estimate costs: EstimatedGraph", "execute: Execution",
    ]  # fmt: skip
    place(*PAIR)
    assert len(seen) == 5, "nobody watches any more"


def test_a_stage_that_breaks_its_record_is_found() -> None:
    placement = place(*PAIR)
    del placement.decisions[3]
    with pytest.raises(AssertionError, match="each decision has its place in the order"):
        verify_stage("place", placement)


def test_a_refused_placement_is_not_run() -> None:
    refused = place(constant("a", (2,), "/gpu:7"), soft=False)
    with pytest.raises(SimplaceError, match="world cannot run, since TensorFlow refuses to place it"):
        refused.runnable()


def test_keywords_of_the_library_are_the_fields_of_the_records() -> None:
    assert list(StepKeywords.__annotations__) == [field.name for field in fields(StepOptions)]
    own = {field.name for field in fields(Settings)} - {"machine", "devices_note", "sources"}
    assert set(SettingKeywords.__annotations__) == own
    assert set(PlaceKeywords.__annotations__) == own - {"soft_placement", "stdout", "stage"} | {"visible"}
