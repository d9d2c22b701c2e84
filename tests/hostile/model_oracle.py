"""Ask TensorFlow and Keras whether they load the SavedModels and .keras files among the inputs, as simplace does.

Weights are left out, since simplace reads none: a SavedModel is loaded without its checkpoint, a .keras file is taken
for its configuration alone.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplace.errors import SimplaceError
from simplace.result import Result
from simplace.targets import Settings, place_target
from tests.hostile.cases import case

ROOT = Path(__file__).resolve().parents[2]
_KINDS = ("SavedModel, messages", "SavedModel, bytes", ".keras, JSON", ".keras, bytes")
# Python's objects around the functions: specs of arguments, by the functions of TensorFlow that make them (load.py,
# function_deserialization.py, nested_structure_coder.py), and what else there is: saveables, slots, attributes of a
# trace.
_SPECS = frozenset({
    "decode_proto", "from_structured_signature", "_deserialize_function_spec_as_nonmethod",
    "set_preinitialized_function_spec",
})  # fmt: skip
_OBJECTS = re.compile(
    r"list index out of range|object is not callable|cycle in the deserialization|Allowlist does not support"
)
_LIMITS = re.compile(
    r"run the model in a script instead|in it of more than|at most [0-9,]+ are read|would not load the function"
    r"|: the function .* waits for '"
    r"|nested more than|has no signatures and no traced functions"  # TensorFlow loads one, which can do nothing
)


@dataclass(frozen=True)
class ModelAnswer:
    """Record of what simplace and TensorFlow, or Keras, said of one model, "" where they take it.

    `is_of_specs` says whether TensorFlow refused it while it made the spec of a function's arguments or results.
    """

    seed: int
    number: int
    kind: str
    ours: str
    theirs: str
    is_of_specs: bool = False

    @property
    def is_of_objects(self) -> bool:
        """Return whether TensorFlow alone refuses the model, for objects of Python that simplace does not read."""
        is_of_them = self.is_of_specs or _OBJECTS.search(self.theirs) is not None
        return bool(self.theirs) and not self.ours and is_of_them

    @property
    def is_wrongly_accepted(self) -> bool:
        """Return whether TensorFlow alone refuses the model, for what simplace reads."""
        return bool(self.theirs) and not self.ours and not self.is_of_objects

    @property
    def is_limit(self) -> bool:
        """Return whether simplace alone refuses the model, for what it cannot read or a function without a body."""
        return bool(self.ours) and not self.theirs and _LIMITS.search(self.ours) is not None

    @property
    def is_wrongly_refused(self) -> bool:
        """Return whether simplace alone refuses the model as one that TensorFlow would not load."""
        return bool(self.ours) and not self.theirs and not self.is_limit


def ask_models(seed: int, numbers: Sequence[int]) -> list[ModelAnswer]:
    """Ask both about the models among some cases of a seed, in a process that is started anew where one ends it."""
    waiting = [number for number in numbers if case(seed, number).kind in _KINDS]
    answers: list[ModelAnswer] = []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    while waiting:
        command = [sys.executable, "-m", "tests.hostile.model_oracle", str(seed), *map(str, waiting)]
        child = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
        lines = [line for line in child.stdout.splitlines() if line.startswith("> ")]
        found = [ModelAnswer(**json.loads(line[2:])) for line in lines]
        answers += found
        waiting = waiting[len(found) :]
        if waiting:
            if child.returncode == 1:
                raise RuntimeError(child.stderr)
            kind, ended = case(seed, waiting[0]).kind, f"TensorFlow died with status {child.returncode}"
            answers.append(ModelAnswer(seed, waiting.pop(0), kind, "", ended))
    return answers


def _answer(seed: int, numbers: Sequence[int]) -> Iterator[ModelAnswer]:
    import tensorflow as tf
    from keras.src.saving import serialization_lib
    from tensorflow.python.saved_model import load

    load.Loader._restore_checkpoint = lambda _: None
    for number in numbers:
        one = case(seed, number)
        with tempfile.TemporaryDirectory() as folder:
            for name, data in one.files.items():
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_bytes(data)
            target = str(Path(folder) / next(iter(one.files)).partition("/")[0])
            is_keras = target.endswith(".keras")
            theirs = (_load_keras(serialization_lib, target), False) if is_keras else _load_saved_model(tf, target)
            yield ModelAnswer(seed, number, one.kind, _place(target), *theirs)


def _place(target: str) -> str:
    try:
        place_target(target, Settings(soft_placement=True), Result)
    except SimplaceError as error:
        return str(error)
    return ""


def _load_saved_model(tf: Any, target: str) -> tuple[str, bool]:
    try:
        tf.saved_model.load(target)
    except Exception as error:
        passed = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
        return f"{type(error).__name__}: {error}", not _SPECS.isdisjoint(passed)
    return "", False


def _load_keras(serialization_lib: Any, target: str) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(Path(target).read_bytes())) as archive:
            config = json.loads(archive.read("config.json"))
        model = serialization_lib.deserialize_keras_object(config)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if hasattr(model, "layers") else "not a model"


if __name__ == "__main__":
    for each in _answer(int(sys.argv[1]), list(map(int, sys.argv[2:]))):
        print("> " + json.dumps(vars(each)), flush=True)
