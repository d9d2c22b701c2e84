"""The agreement table: what is kept per version, which runs are out of date, the pages made of it."""

from __future__ import annotations

import pytest

from simplace.errors import TargetError
from simplace.machine.machine import Machine
from tests.agreement import __main__ as command_line
from tests.agreement import document, table
from tests.agreement import record as records
from tests.agreement.failure_records import save_counts
from tests.agreement.record import Cell, Record, Run
from tests.agreement.runner import Outcome
from tests.agreement.table import COLUMNS, Column, Selection
from tests.failures.measure import FailureCounts


def run(digest="a", seconds=2.0, end="", **cells):
    return Run("2026-11-20", digest, seconds, end, cells)


RECORD = Record(
    "2.16.2",
    {
        "loops": {
            "0 GPU soft": run(main=Cell(3, 3, 1, 0, 0, 2, 2)),
            "0 GPU hard": run(main=Cell(1, 1, 1, 1), late=Cell(4, 5, 2, 0, 1)),
        },
        "half": {"0 GPU soft": run(end="KeyError: 'x'", seconds=0.6, f=Cell(2, 2, 1))},
        "cluster": {"ps=cpu:1 soft": run(seconds=7.2, f=Cell(9, 9, 1, 0, 1, 3, 4))},
    },
)


def test_a_cell_adds_up_placements():
    cell = Cell()
    cell.add(Outcome("", "f", 5, 5))
    cell.add(Outcome("", "f", 4, 3, ("a: CPU:0, TensorFlow GPU:0",), refused=True))
    cell.add(Outcome("", "f", 1, 1, copies_same=2, copies=3))
    assert cell == Cell(9, 10, 3, 1, 1, 2, 3)


def test_a_record_is_read_back(tmp_path):
    path = tmp_path / "docs" / "2.16.2.json"
    records.save(path, RECORD)
    assert records.load(path, "2.16.2") == RECORD
    assert path.read_text().splitlines()[4] == (
        '   "0 GPU soft": {"date": "2026-11-20", "digest": "a", "seconds": 2.0, "end": "", '
        '"cells": {"main": [3, 3, 1, 0, 0, 2, 2]}},'
    )


def test_a_version_not_compared_yet_has_an_empty_record(tmp_path):
    assert records.load(tmp_path / "2.17.1.json", "2.17.1") == Record("2.17.1", {})


def test_scripts_that_are_gone_are_forgotten():
    record = Record("2.16.2", dict(RECORD.runs))
    record.keep({"half": ["0 GPU soft", "0 GPU hard"], "new": ["0 GPU soft"], "loops": ["0 GPU hard"]})
    assert {script: list(runs) for script, runs in record.runs.items()} == {
        "half": ["0 GPU soft"],
        "loops": ["0 GPU hard"],
    }


def test_the_page_of_a_version():
    lines = document.version_page(RECORD).splitlines()
    assert lines[0] == "# Agreement with TensorFlow 2.16.2"
    assert lines[9:] == [
        "| script | program | 0 GPU soft | 0 GPU hard | copies | s |",
        "|---|---|---|---|---|---|",
        "| loops | main | 3/3 | 1/1 r | 2/2 | 4 |",
        "| loops | late |  | **4/5** | 0/0 |  |",
        "| half | f | 2/2 |  | 0/0 | 1 |",
        "",
        "| script | program | ps=cpu:1 soft | copies | s |",
        "|---|---|---|---|---|",
        "| cluster | f | **9/9** | **3/4** | 7 |",
        "",
        "Scripts that did not run to their end:",
        "",
        "- half (0 GPU soft): `KeyError: 'x'`",
    ]


def test_the_page_of_sums(tmp_path):
    rest = {"functions of datasets and calls": Cell(7, 7, 2), "eager ops": Cell(30, 30, 1)}
    newer = Record("2.21.0", {"loops": {"0 GPU soft": run(main=Cell(3, 3, 1), **rest)}})
    failures = tmp_path / "failures.json"
    save_counts(failures, {"2.21.0": FailureCounts("2026-11-20", 55, 54, 43, 1)})
    lines = document.summary_page([newer, RECORD], tmp_path / "none.json", failures, "agreement").splitlines()
    assert lines[7:11] == [
        "| TensorFlow | compared | programs | placements | refused | nodes | of them in datasets and calls | eager ops "
        "| copies | cells that differ | failures predicted | false alarms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        "| [2.21.0](agreement/2.21.0.md) | 2026-11-20 | 1 | 3 | 0 | 10 | 7 | 30 | 0 | 0 | 54 of 55 | 1 of 43 |",
        "| [2.16.2](agreement/2.16.2.md) | 2026-11-20 | 4 | 6 | 1 | 20 | - | - | 6 | 2 | - | - |",
    ]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "half.py"
    path.write_text("print('hello')\n")
    return path


def test_only_what_is_out_of_date_is_compared(script):
    fresh = run(table._digest(script))
    record = Record("2.16.2", {"half": {"0 GPU soft": fresh, "0 GPU hard": fresh, "1 GPU soft": run("older")}})
    names = [column.name for column in table._list_selected(script, record, Selection(only_stale=True))]
    assert names == [column.name for column in COLUMNS[2:]]
    names = [column.name for column in table._list_selected(script, record, Selection(columns=("1 GPU",)))]
    assert names == ["1 GPU soft", "1 GPU hard"]


def test_a_script_may_name_its_machines(script):
    assert table.columns(script) == COLUMNS
    script.write_text("# machines: cpu:2; cpu:1,gpu:3\nprint('hello')\n")
    assert table.columns(script) == (
        Column("cpu:2 soft", Machine(cpus=2, gpus=0), True),
        Column("cpu:2 hard", Machine(cpus=2, gpus=0), False),
        Column("cpu:1,gpu:3 soft", Machine(gpus=3), True),
        Column("cpu:1,gpu:3 hard", Machine(gpus=3), False),
    )


def test_two_scripts_may_not_share_a_name(tmp_path, monkeypatch):
    for folder in ("samples", "tests/agreement/corpus"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "loops.py").touch()
    monkeypatch.setattr(table, "ROOT", tmp_path)
    with pytest.raises(TargetError, match="has the name of"):
        table.scripts()


@pytest.mark.parametrize("words", ["--only x y --stale --jobs 3 table", "table --only x y --stale --jobs 3"])
def test_what_to_compare_is_said_before_or_after_the_name_of_the_command(monkeypatch, words):
    asked = []
    monkeypatch.setattr(table, "write", lambda selection: asked.append(selection) or 0)
    assert command_line.main(words.split()) == 0
    assert asked == [Selection(("x", "y"), ("",), True, 3)]


def test_all_is_compared_where_nothing_is_selected(monkeypatch):
    asked = []
    monkeypatch.setattr(table, "write", lambda selection: asked.append(selection) or 0)
    assert command_line.main(["--jobs", "2", "table"]) == 0
    assert asked == [Selection(("",), ("",), False, 2)]


def test_a_command_after_texts_is_no_text(capsys):
    with pytest.raises(SystemExit):
        command_line.main("--only x table".split())
    told = "argument --only: 'table' is a command, which goes before --only and --column"
    assert told in capsys.readouterr().err
