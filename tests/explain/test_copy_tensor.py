"""Which variants cannot come to a GPU, and what TensorFlow says of them."""

from __future__ import annotations

from dataclasses import replace

from simplace.doctor.failures import failures_of_run
from simplace.explain.failures import NotCopied, find_failures, format_failure
from simplace.pipeline import place_program
from simplace.program.observation import PythonFact
from simplace.program.program import Program
from tests.lowering.worlds import CPU0, DEVICES, TABLE, call_program, function

HANDED_ON = function(
    "f(d: variant, p: bool) -> y: variant",
    """
    s = Switch(d, p) {T=variant}
    i = Identity(s:output_true:0) @/device:GPU:0 {T=variant}
    c = Identity(i:output:0) @/device:CPU:0 {T=variant}
    """,
    {"y": "c:output:0"},
)
NO_COPY = (
    "No unary variant device copy function found for direction: 1 and Variant type_index: "
    "tensorflow::data::(anonymous namespace)::DatasetVariantWrapper"
)


def failures(program: Program) -> list[str]:
    return [format_failure(one) for one in find_failures(place_program(program, DEVICES, TABLE))]


def test_a_dataset_that_a_branch_hands_to_a_gpu() -> None:
    program = replace(call_program(HANDED_ON), datasets=frozenset({0}))
    assert failures(program) == [f"a dataset cannot be copied to GPU:0: {NO_COPY}"]


def test_an_argument_of_which_nothing_is_known_is_no_failure() -> None:
    assert failures(call_program(HANDED_ON)) == []


def test_a_dataset_that_stays_on_the_cpu_is_no_failure() -> None:
    first, _, last = HANDED_ON.nodes
    stays = replace(
        HANDED_ON, nodes=(first._replace(device="/device:CPU:0"), last._replace(inputs=("s:output_true:0",)))
    )
    program = replace(call_program(stays), datasets=frozenset({0}))
    assert failures(replace(program, scope=CPU0)) == []
    assert len(failures(program)) == 1  # the result goes to the GPU that the function is called on


def told(error: str) -> list[tuple[str, str]]:
    found = failures_of_run((PythonFact("raised", "model.py:3", {"error": error}),))
    return [(one.content, one.device) for one in found if isinstance(one, NotCopied)]


def test_what_ends_a_program() -> None:
    head = f"Failed copying input tensor from {CPU0} to {CPU0.replace('CPU:0', 'GPU:1')} in order to run Identity: "
    assert told(f"{head}{NO_COPY} [Op:Identity]") == [("a dataset", "GPU:1")]
    text = f"Can't copy Tensor with type string to device {CPU0.replace('CPU:0', 'GPU:0')}."
    assert told(text) == [("a tensor of type string", "GPU:0")]
    element = "During Variant Host->Device Copy: non-DMA-copy attempted of tensor type: string"
    assert told(element) == [("a list with elements of type string", "a GPU")]
    assert told("Dst tensor is not initialized.") == []
