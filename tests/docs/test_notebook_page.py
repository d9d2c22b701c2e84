"""The notebook in docs/ shows what its cells give, byte by byte."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from notebooks import run

FILE = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"


@pytest.mark.tf
@pytest.mark.usefixtures("shown_version", "forked")
def test_the_outputs_stored_are_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    notebook = json.loads(FILE.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    for number, (cell, outputs) in enumerate(run(notebook), start=1):
        if request.config.getoption("--rewrite-golden"):
            cell["outputs"], cell["execution_count"] = outputs, number
        assert outputs == cell["outputs"], f"cell {number}; pytest --rewrite-golden"
    if request.config.getoption("--rewrite-golden"):
        FILE.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def test_every_cell_has_run_in_order() -> None:
    notebook = json.loads(FILE.read_text(encoding="utf-8"))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in codes] == list(range(1, len(codes) + 1))
    assert sum(bool(cell["outputs"]) for cell in codes) >= 8
    assert not re.search(r"/(?:home|root|tmp|work)/", json.dumps(notebook))
