"""What the JSON report and the summary say of copies that TensorFlow makes differently."""

from dataclasses import replace

from simplace.checks.verdicts import COPY_DIFFERS, of_agreement
from simplace.compare.compare_placements import compare_placement
from simplace.compare.compare_transfers import CopyAgreement, CopyDifference, Transfer
from simplace.devices.device_set import local_devices
from simplace.exports.json_report import report_result
from simplace.program.observation import LoggedNode
from simplace.result import Placed, Result
from simplace.views.text.summary import copies_line
from tests.worlds import CPU, GPU0, constant, node, place

OURS = Transfer("a:0", CPU, GPU0, "float32", "_Send", "_Recv", ("x",), ())


def result(agreement: CopyAgreement | None) -> Result:
    placement = place(constant("a", (2,), device="/CPU:0"), node("x", "Neg", "a", device="/GPU:0"))
    placed = Placed(placement, None, agreement)
    return Result("model.py", "2.21.0", "", local_devices([("CPU", 1), ("GPU", 2)]), (placed,))


def test_a_copy_that_only_simplace_has():
    found = result(CopyAgreement(3, 4, (CopyDifference(OURS, None),)))
    assert report_result(found)["programs"][0]["copy_agreement"] == {
        "same": 3,
        "total": 4,
        "differences": [
            {
                "tensor": "a:0",
                "from": CPU,
                "to": GPU0,
                "simplace": {
                    "send": "_Send", "receive": "_Recv", "dtype": "float32", "consumers": ["x"], "after": [],
                },
                "tensorflow": None,
            }
        ],
    }  # fmt: skip
    assert copies_line(found) == (
        "copies DIFFER from TensorFlow's partition graphs: 3/4 the same; world: a:0 from CPU:0 to GPU:0: "
        "simplace _Send and _Recv of float32 for x, TensorFlow none"
    )
    assert not found.agrees


def test_programs_that_tensorflow_did_not_cut_are_counted():
    cut, uncut = result(CopyAgreement(4, 4)), result(None)
    both = replace(cut, programs=(*cut.programs, *uncut.programs))
    assert copies_line(both) == "copies: 4/4 as in TensorFlow's partition graphs; TensorFlow made none for 1 program"


def test_a_verdict_names_the_copy():
    one = result(CopyAgreement(0, 1, (CopyDifference(OURS, None),)))
    log = [LoggedNode(each.name, each.op, each.device) for each in one.nodes]
    (placed,) = one.programs
    compared = replace(one, programs=(replace(placed, agreement=compare_placement(placed.placement, log)),))
    (verdict,) = of_agreement(compared)
    assert [(problem.rule, problem.message) for problem in verdict.problems] == [
        (
            COPY_DIFFERS,
            "the copy of a:0 from CPU:0 to GPU:0: simplace _Send and _Recv of float32 for x, TensorFlow none",
        )
    ]


def test_copies_that_were_not_asked_for():
    found = result(None)
    assert report_result(found)["programs"][0]["copy_agreement"] is None
    assert copies_line(found) == ""
    assert [(each.problems, each.skipped) for each in of_agreement(found)] == [((), "TensorFlow was not asked")]
