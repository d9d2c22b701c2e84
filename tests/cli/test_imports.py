"""What a command imports, since that is most of what a small graph takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GRAPH = 'node { name: "a" op: "NoOp" } node { name: "b" op: "NoOp" input: "^a" }'
LARGE = ("tensorflow", "numpy", "networkx", "graphviz", "pygraphviz", "rich.console", "email", "asyncio")
PROGRAM = """
import sys
from simplace.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stderr.write(" ".join(sys.modules))
"""


def imported(*words: str) -> set[str]:
    """Name the modules that a command has imported when it ends."""
    command = [sys.executable, "-c", PROGRAM, *words]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())


def packages(modules: set[str]) -> set[str]:
    """Name the packages of simplace among modules."""
    return {module.split(".")[1] for module in modules if module.startswith("simplace.")}


def test_help_imports_the_commands_alone() -> None:
    modules = imported("--help")
    assert packages(modules) == {"_version", "cli", "commands", "errors", "progress"}
    assert modules.isdisjoint({*LARGE, "dataclasses", "google", "viz"})


def test_a_graph_is_shown_by_what_reads_and_places_it(tmp_path: Path) -> None:
    file = tmp_path / "graph.pbtxt"
    file.write_text(GRAPH)
    modules = imported("show", str(file), "--devices", "cpu:1")
    assert packages(modules) == set(
        "_version api cli commands devices errors explain graph importers input_file kernels lowering machine "
        "oracle partition pipeline placement program progress result targets views".split()
    )
    assert modules.isdisjoint(LARGE)
    assert {module for module in modules if module.startswith("simplace.commands.")} == {
        f"simplace.commands.{name}"
        for name in ("figures", "help_text", "judging", "options", "output", "show", "streams", "terminal")
    }
    assert {module for module in modules if module.startswith("simplace.explain.")} == {
        f"simplace.explain.{name}" for name in ("copy_tensor", "finding", "findings", "placement_findings")
    }
    asked = {module for module in modules if module.startswith("simplace.oracle.")}
    assert asked == {"simplace.oracle.import_question"}
