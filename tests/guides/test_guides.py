"""What the tool for notebooks makes of a cell, and which lines it takes to be alike."""

from __future__ import annotations

import json
from pathlib import Path

from tests.guides.compare_output import differing_lines
from tests.guides.convert_notebook import convert_notebook
from tests.guides.guide_table import write_page

CELLS = (
    "!pip install \\\n  tf-nightly\nimport tensorflow as tf\n%matplotlib inline",
    "%%bash\nls",
    "EPOCHS = 30\nmodel.fit(x, epochs=10)\nmodel.summary()",
)
SCRIPT = """\
from prelude import _cap_epochs, _print_value, _report_error

try:
    pass
    import tensorflow as tf
    pass
except Exception as _error:
    _report_error(0, _error)

try:
    EPOCHS = _cap_epochs(30)
    model.fit(x, epochs=_cap_epochs(10))
    _print_value(model.summary())
except Exception as _error:
    _report_error(2, _error)
"""


def test_a_notebook_becomes_a_script(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["# Title"]}]
    cells += [{"cell_type": "code", "source": [cell]} for cell in CELLS]
    path = tmp_path / "notebook.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert convert_notebook(path) == SCRIPT


def test_times_devices_and_last_digits_are_alike() -> None:
    log = "mul: (Mul): /job:localhost/replica:0/task:0/device:CPU:0\n"
    rest = "1/3 - loss: 2.0\r3/3 - loss: 1.0\nobject at 0x7fa1\n"
    plain = f"{log}on /device:CPU:0 took 3.2 s\nExecution time: 0.21\nloss: 0.50001\n{rest}"
    rest = "2/3 - loss: 1.5\r3/3 - loss: 1.0\nobject at 0x7fb2\n"
    ours = f"on /device:GPU:0 took 31 s\nExecution time: 0.35\nloss: 0.50002\n{rest}"
    assert differing_lines(plain, ours) == []


def test_other_numbers_words_and_lines_differ() -> None:
    assert differing_lines("a\nloss: 0.5\nb\n", "a\nloss: 0.6\nnew\nb\n") == [("loss: 0.5", "loss: 0.6"), ("", "new")]


def test_the_page_has_a_row_a_notebook(tmp_path: Path) -> None:
    verdict = "agrees with TensorFlow 2.21.0: 5/5 nodes, 7/7 eager ops; f (a.py:3) was not reached"
    run = {
        "failure": "",
        "agrees": True,
        "verdict": verdict,
        "differing": [],
        "ended_cells": 0,
        "programs": 1,
        "tensorflow": "2.21.0",
    }
    runs = {"guide/data": {"1": run, "2": {**run, "differing": [["a", "b"]], "ended_cells": 3}}}
    runs["guide/tpu"] = {"1": {**run, "programs": 0, "ended_cells": 10}}
    page = tmp_path / "page.md"
    page.write_text("# Old\n\nold\n\n## Other\n\nkept\n")
    write_page(runs, page)
    assert page.read_text().splitlines()[-11:] == [
        "Run by TensorFlow 2.21.0.",
        "",
        "| notebook | gpu:1 | gpu:2 |",
        "| --- | --- | --- |",
        "| guide/data | alike; 5 of 5 nodes, 7 of 7 eager ops | 1 line differs; 5 of 5 nodes, 7 of 7 eager ops; "
        "3 cells end with an exception |",
        "",
        "Left out, since most of their cells need a download or a package that is not there: guide/tpu.",
        "",
        "## Other",
        "",
        "kept",
    ]
