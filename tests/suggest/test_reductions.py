"""Other ways to sum up the gradients of replicas: which calls are changed, and what TensorFlow's log says of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.suggestions.edits import apply_edits
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.strategy_changes import find_reductions, list_reductions
from tests.suggest.observed import observe

PROGRAM = Path(__file__).parent / "programs" / "copied_sums.py"
ONE, HIERARCHICAL, NCCL = "ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce"


def written(line: str) -> list[tuple[str, str]]:
    """Return what each other way to sum up replaces, and the line that it writes."""
    source = SourceFile("model.py", line)
    return [(change.before, apply_edits(source, change.edits)) for change in list_reductions([source])]


def test_the_default_is_nccl_and_copies_are_tried():
    assert written("s = tf.distribute.MirroredStrategy()\n") == [
        ("", f"s = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.{HIERARCHICAL}())\n"),
        ("", f"s = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.{ONE}())\n"),
    ]
    assert len(written("s = d.MirroredStrategy(gpus, None)\n")) == 2


def test_what_a_program_has_chosen_is_replaced():
    chosen = f"s = d.MirroredStrategy(cross_device_ops=d.{HIERARCHICAL}(num_packs=2))\n"
    assert written(chosen) == [
        (HIERARCHICAL, f"s = d.MirroredStrategy(cross_device_ops=d.{NCCL}())\n"),
        (HIERARCHICAL, f"s = d.MirroredStrategy(cross_device_ops=d.{ONE}())\n"),
    ]
    assert [before for before, _ in written(f"s = d.MirroredStrategy(gpus, d.{ONE}())\n")] == [ONE, ONE]


@pytest.mark.parametrize(
    "call",
    ["d.MirroredStrategy(**chosen)", "d.MirroredStrategy(gpus, ops)", "MirroredStrategy()", "d.OneDeviceStrategy(ops)"],
)
def test_what_is_not_known_is_left_alone(call: str):
    assert written(f"s = {call}\n") == []


@pytest.mark.tf
@pytest.mark.usefixtures("forked")
def test_one_that_sums_up_while_gradients_are_computed_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PROGRAM.read_text()
    observed = observe(text)
    trial = observed.attempt(next(one for one in find_reductions(observed.evidence) if one.after == ONE))
    assert trial.result is not None
    assert (trial.outcome, trial.result.agrees, trial.is_per_example) == ("held", True, False)
    assert trial.gain > trial.gain_error > 0
    assert trial.texts["model.py"] == text.replace(f"{HIERARCHICAL}(num_packs=1)", f"{ONE}()")
