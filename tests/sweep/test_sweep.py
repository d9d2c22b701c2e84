"""A slice of the sweep: no process is killed, and all nodes agree."""

from pathlib import Path

import pytest

from simplace.machine.machine import Machine
from tests.sweep.batches import run
from tests.sweep.figures import FILE, Figures, read

# Each once ended TensorFlow's process on an emulated GPU, or stands for those that do: reductions, decompositions that
# abort on a refused allocation, updates in place, references, sparse matrices, collectives, cuDNN, XLA. Others were
# told wrong: ops that are no longer imported, shapes that do not fit, a kernel that depends on an attribute that its op
# lacks, a predicate that is a number.
OPS = (
    "All", "ArgMax", "Assign", "BatchNormWithGlobalNormalization", "CTCLossV2", "CheckNumerics", "Cholesky",
    "CollectiveReduceV2", "CudnnRNNV3", "Lu", "Max", "ResourceApplyAdam", "ScatterUpdate", "SparseMatrixMatMul", "Sum",
    "TensorListStack", "TopK", "Where", "XlaLaunch",
)  # fmt: skip
FUNCTIONS = (
    "tf.keras.ops.cond",
    "tf.nn.moments",
    "tf.nn.softmax",
    "tf.searchsorted",
    "tf.signal.rfft",
    "tf.sort",
    "tf.where",
)


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(("kind", "names", "gpus"), [("ops", OPS, 2), ("surface", FUNCTIONS, 1)])
def test_no_process_is_killed_and_all_nodes_agree(kind, names, gpus):
    (batch,) = run(kind, names, Machine(gpus=gpus))
    assert (batch.killed, batch.differing, batch.none) == ("", [], {})
    assert batch.programs > 10 * len(names)


def test_the_document_has_the_figures_of_the_last_sweep():
    figures = read(FILE)
    assert figures.are_clean
    assert figures.table() in (Path(FILE).parent / "reliability.md").read_text(encoding="utf-8")


def test_figures_are_added_up_by_machine():
    batch = {
        "kind": "ops",
        "gpus": 1,
        "names": ["A", "B"],
        "cases": 5,
        "programs": 4,
        "nodes": 9,
        "differing": [],
        "alone": False,
    }
    figures = Figures.of(
        [batch | {"none": {"B": "why"}, "killed": ""}, batch | {"none": {}, "killed": "A_CPU"}], "2.21"
    )
    assert figures.table().splitlines()[-1] == "| ops with a GPU kernel | 1 | 4 | 3 | 10 | 8 | 18 | 0 | 1 | 0 |"
    assert (figures.none, figures.are_clean) == ({"B": "why"}, False)
