"""Ask TensorFlow in one process whether it imports graphs, and compare with what simplace says of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplace.errors import ImportRefusedError, SimplaceError
from simplace.graph import graph_def
from simplace.importers.import_graph_def import refuse_import
from simplace.kernels.registry import KernelTable
from simplace.oracle.import_question import ask_import
from tests.hostile.cases import case

ROOT = Path(__file__).resolve().parents[2]
OURS = "TensorFlow would not import this graph: "
SHAPES = re.compile(
    r"with input shapes|with computed input tensors|Shape must be|Dimension|inconsistent with the GraphDef"
    r"|invalid _output_shapes|Unable to evaluate a constant node"
)


@dataclass(frozen=True)
class Answer:
    """Record of what simplace and TensorFlow said of one graph, "" where they take it."""

    name: str
    ours: str
    theirs: str

    @property
    def is_of_shapes(self) -> bool:
        """Return whether both refuse the graph, TensorFlow for its shapes, simplace for what comes after them."""
        return bool(self.ours) and not self._is_alike and SHAPES.search(self.theirs) is not None

    @property
    def is_wrongly_accepted(self) -> bool:
        """Return whether TensorFlow alone refused the graph."""
        return bool(self.theirs) and not self.ours

    @property
    def is_wrongly_refused(self) -> bool:
        """Return whether simplace alone refused the graph, as one that TensorFlow would not import."""
        return self.ours.startswith(OURS) and not self.theirs

    @property
    def is_reason_alike(self) -> bool:
        """Return whether both give the same reason; only asked where both refuse what can be read."""
        if not self.ours.startswith(OURS) or not self.theirs or self.is_of_shapes or "died with" in self.theirs:
            return True
        return self._is_alike

    @property
    def _is_alike(self) -> bool:
        return _without_order(self.ours.removeprefix(OURS)) == _without_order(self.theirs)


def _without_order(reason: str) -> str:
    """Return a reason without what depends on the order of a hash table: which of several attributes is told of."""
    if match := re.match(r"(.*Op type not registered '[^']*')", reason, re.DOTALL):
        return match[1]
    if match := re.match(r"(.*)NodeDef missing attrs '(.*)' from (.*)", reason, re.DOTALL):
        return f"{match[1]} {sorted(match[2].replace(chr(39), '').split(', '))} {match[3]}".replace("'", "")
    if match := re.match(r"(.*(Expected binary or unicode string, got|can't decode byte))", reason, re.DOTALL):
        return match[1]
    if match := re.match(r"(.*)NodeDef expected inputs '.*' (do not match .*)", reason, re.DOTALL):
        return match[1] + match[2]  # a hundred million names
    if match := re.match(r".*(AttrValue|Value for attr|Length for attr).*; NodeDef: (.*); Op<", reason, re.DOTALL):
        return f"attributes of {match[2]}"
    return reason


def ask(graphs: Mapping[str, bytes]) -> list[Answer]:
    """Ask both about serialized graphs, by name."""
    table = KernelTable.shipped()
    theirs = import_graphs(list(graphs.values()))
    return [
        Answer(name, _ours(data, table), reason) for (name, data), reason in zip(graphs.items(), theirs, strict=True)
    ]


def graphs_of(seed: int, numbers: Iterable[int]) -> dict[str, bytes]:
    """Return the graphs among the cases of a seed."""
    cases = {f"{seed}/{number}": case(seed, number) for number in numbers}
    return {name: one.files[one.graph] for name, one in cases.items() if one.graph}


def _ours(data: bytes, table: KernelTable) -> str:
    try:
        graph = graph_def.parse_graph_def(data)
        refuse_import(graph, table)
    except SimplaceError as error:
        return str(error)
    with ask_import(graph) as question:
        try:
            return "" if question.refuse() else "TensorFlow gave no answer"
        except ImportRefusedError as error:
            return OURS + in_short(str(error).removeprefix(OURS))


def import_graphs(graphs: Sequence[bytes]) -> list[str]:
    """Return TensorFlow's message for each graph, "" for one that it imports; in a process, started anew if it dies."""
    messages: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for i, data in enumerate(graphs):
            (Path(folder) / str(i)).write_bytes(data)
        while len(messages) < len(graphs):
            command = [sys.executable, "-m", "tests.hostile.oracle", folder, str(len(messages)), str(len(graphs))]
            environment = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "CUDA_VISIBLE_DEVICES": "",
            }
            child = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
            messages += [json.loads(line[2:]) for line in child.stdout.splitlines() if line.startswith("> ")]
            if len(messages) < len(graphs):
                if child.returncode == 1:
                    raise RuntimeError(child.stderr)
                messages.append(f"TensorFlow died with status {child.returncode}")
    return [in_short(message) for message in messages]


def in_short(message: str) -> str:
    """Return a message of TensorFlow as simplace gives it: in one line, of an op the name alone."""
    line = re.sub(r"\n\t ?", " ", message.replace("\\n", "\n")).replace(" ; ", "; ")
    line = re.sub(r" \[\[\{\{node [^}]*\}\}\]\]$", "", line)
    line = re.sub(r"(FunctionDefLibrary .*?)\nfunction .*", r"\1", line, flags=re.DOTALL)
    return re.sub(r"Op<name=([^;]*);.*?(?<!-)>(?=;|$| This may|' The)", r"Op<name=\1>", line, flags=re.DOTALL).strip()


def _main(folder: str, first: int, stop: int) -> None:
    import tensorflow as tf

    for i in range(first, stop):
        print("> " + json.dumps(_message(tf, (Path(folder) / str(i)).read_bytes())), flush=True)


def _message(tf: Any, data: bytes) -> str:
    try:
        definition = tf.compat.v1.GraphDef.FromString(data)
        with tf.Graph().as_default():
            tf.graph_util.import_graph_def(definition, name="")
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
