"""A replica on each GPU: the statements that make a model are found, and what TensorFlow's log says of the patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from simplace.analysis.device_comparison import DeviceComparison, DevicesTrial, compare_devices
from simplace.suggestions.changes import MirroredReplicas
from simplace.suggestions.edits import Wrapping, apply_edits
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.find_suggestions import compare_replicas
from simplace.suggestions.mirrored_changes import ModelMakers, find_mirroring, list_busy_gpus
from simplace.suggestions.source_file import SourceFile
from simplace.suggestions.suggestion_sentences import describe_change, describe_replicas
from simplace.suggestions.trial import Trial
from tests.suggest.observed import observe

PROGRAMS = Path(__file__).parent / "programs"
DEVICES = "cpu:1,gpu:2"

tf = pytest.mark.tf
forked = pytest.mark.usefixtures("forked")


def ranges(text: str, *lines: int) -> list[tuple[int, int]]:
    """Return the first and the last line of what is wrapped, given those that made layers."""
    source = SourceFile("model.py", text)
    models = ModelMakers([source], {(source.path, line) for line in lines})
    return [(first.lineno, last.lineno) for first, last in models.list_ranges(source)]


def test_a_model_is_made_from_its_first_layer_to_its_compilation():
    assert ranges("a = Dense(1)\nx = read()\nm = Sequential([a])\nm.compile('sgd')\nm.fit(x)\n", 1, 3) == [(1, 4)]


def test_an_optimizer_that_is_made_before_the_model_belongs_to_it():
    assert ranges("adam = Adam()\nx = read()\nm = Sequential([Dense(1)])\nm.compile(adam)\n", 3) == [(1, 4)]


def test_a_model_that_a_library_makes_is_known_by_its_name():
    assert ranges("x = read()\nm = keras.applications.ResNet50()\nm.compile('sgd')\n") == [(2, 3)]


def test_a_model_that_a_function_makes_is_made_where_that_is_called():
    text = (
        "def layer():\n    return Dense(1)\n\ndef make():\n    return Model(layer())\n\nm = make()\nm.compile('sgd')\n"
    )
    assert ranges(text, 2) == [(7, 8)]


def test_a_model_that_is_compiled_in_another_block_than_it_is_made_in_is_left_alone():
    assert ranges("def train(m):\n    m.compile('sgd')\n\nm = Dense(1)\ntrain(m)\n", 4) == []
    assert ranges("import re\nm = Dense(1)\nre.compile('a')\n", 2) == []


def test_the_patch_indents_all_statements_between_but_no_line_of_a_string():
    source = SourceFile("model.py", "a = Dense(1)\ns = '''\nb'''\na.compile()\n")
    text = apply_edits(source, [Wrapping("model.py", 1, 4, "with scope():")])
    assert text == "with scope():\n    a = Dense(1)\n    s = '''\nb'''\n    a.compile()\n"


def test_what_each_gpu_takes_is_told():
    change = MirroredReplicas(edits=(), at="m.py:3", replicas=2, examples=33, copied=0)
    assert describe_change(change) == (
        "m.py:3: copy the model to all 2 GPUs, each of which takes 17 of the 33 examples of a step"
    )


def try_mirroring(text: str) -> tuple[Evidence, Trial]:
    observed = observe(text, gpu="t4")
    (change,) = find_mirroring(observed.evidence)
    return observed.evidence, observed.attempt(change)


@tf
@forked
def test_replicas_gain_where_an_example_is_much_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (PROGRAMS / "keras_on_one_gpu.py").read_text()
    _, trial = try_mirroring(text)
    assert trial.after is not None
    assert trial.result is not None
    assert (trial.outcome, trial.result.agrees, trial.is_per_example) == ("held", True, True)
    assert (trial.before.examples, trial.after.examples) == (4096, 4096)
    assert [list_busy_gpus(step.schedule) for step in (trial.before, trial.after)] == [
        ["/job:localhost/replica:0/task:0/device:GPU:0"],
        [f"/job:localhost/replica:0/task:0/device:GPU:{i}" for i in range(2)],
    ]
    assert trial.gain > trial.gain_error
    assert describe_change(trial.change) == (
        "model.py:8: copy the model to all 2 GPUs, each of which takes 2,048 of the 4,096 examples of a step"
    )
    assert trial.texts["model.py"] == text.replace(
        "\n".join(text.splitlines()[7:11]),
        "\n".join(
            ["with tf.distribute.MirroredStrategy().scope():", *(f"    {line}" for line in text.splitlines()[7:11])]
        ),
    )
    assert compare_replicas([trial]) is None
    assert "XLA compiles" in compare_devices(trial.before.schedule, trial.after.schedule).unknown
    patched = Evidence("model.py", trial.result, trial.result.largest(), trial.after.schedule, trial.texts)
    assert list(find_mirroring(patched)) == []


SMALL = """\
import numpy as np
from keras import Sequential, layers

wide = [layers.Dense(1024) for _ in range(2)]
model = Sequential([layers.Input([8]), *wide, layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=False)
model.fit(np.ones([96, 8]), np.ones([96, 1]), batch_size=96, verbose=0)
"""


@tf
@forked
def test_replicas_of_a_small_batch_are_worth_it_from_a_larger_one_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, trial = try_mirroring(SMALL)
    assert (trial.outcome, trial.error, trial.gain < 0) == ("held", "", True)
    assert "from keras import Sequential, layers\nimport tensorflow as tf\n" in trial.texts["model.py"]
    found = compare_replicas([trial])
    assert found is not None
    assert found.worth_from is not None
    batch = found.worth_from.factor * 96
    assert f"does not gain with this batch of 96, but from one of {batch:,} on (" in describe_replicas(found)


def test_batches_that_never_gain_are_told() -> None:
    trials = DevicesTrial(1, 900, 2000, (0.1, 0.2), 0.1), DevicesTrial(2, 900, 3000, (0.1, 0.2), 0.1)
    found = DeviceComparison(None, None, (8, 8), trials)  # type: ignore[arg-type]
    assert describe_replicas(found) == (
        "a replica on each GPU (tf.distribute.MirroredStrategy) was tried, too: 900 ns ± 10% to 2 µs ± 20% a step, "
        "which does not gain, nor with any batch up to 16"
    )
