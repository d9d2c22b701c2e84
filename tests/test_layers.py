"""The architecture, measured: imports only go down, TensorFlow is imported in named places."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for package in ("simplace", "viz") for path in (ROOT / package).rglob("*.py"))

# Who may import whom inside simplace, besides errors; a name stands for a package or a top-level module.
ALLOWED = {
    "__init__": {"_version", "library", "targets", "placement", "scheduling"},
    "library": {
        "changes", "exports", "machine_file", "placement", "report", "result", "scheduling", "step_times", "targets",
        "views", "what_if",
    },
    "__main__": {"cli"},
    "cli": {"_version", "commands"},
    "commands": {
        "changes", "importers", "step_times", "what_if", "doctor", "requirements", "verdicts",
        "costs", "exports", "graph", "kernels", "machine_file", "oracle", "progress", "report", "result",
        "schedule_check", "scheduling", "targets", "views",
    },
    "report": {
        "devices", "executor", "explain", "graph", "partition", "placement", "progress", "result", "scheduling",
        "surprises", "views",
    },
    "agreement": {
        "comparison", "cut_check", "devices", "graph", "kernels", "machine_file", "oracle", "placement", "simulation",
    },
    "targets": {
        "call_device", "comparison", "cut_check", "devices", "graph", "importers", "kernels", "oracle", "progress",
        "result", "simulation",
    },
    "result": {"comparison", "cut_check", "devices", "explain", "graph", "oracle", "partition", "placement"},
    "changes": {"partition", "placement", "result"},
    "requirements": {"devices", "explain", "placement", "result"},
    "verdicts": {"comparison", "cut_check", "requirements", "result"},
    "testing": {"importers", "machine_file", "requirements", "result", "targets"},
    "doctor": {
        "call_device", "devices", "explain", "graph", "importers", "kernels", "oracle", "placement", "result",
        "surprises", "verdicts",
    },
    "what_if": {"devices", "explain", "importers", "kernels", "result", "simulation"},
    "simulation": {"call_device", "devices", "graph", "importers", "kernels", "lowering", "placement", "refusal"},
    "comparison": {"devices", "oracle", "placement"},
    "cut_check": {"graph", "oracle", "partition", "placement"},
    "explain": {"devices", "graph", "kernels", "partition", "placement"},
    "surprises": {"graph", "partition", "placement"},
    "call_device": {"devices", "refusal"},
    "machine_file": {"devices", "oracle"},
    "devices": set(),
    "refusal": set(),
    "errors": set(),
    "progress": set(),
    "_version": set(),
    "graph": set(),
    "kernels": {"graph", "importers", "devices"},
    "importers": {"graph", "kernels", "devices"},
    "lowering": {"devices", "graph", "importers", "kernels", "refusal"},
    "placement": {"devices", "graph", "importers", "kernels", "refusal"},
    "partition": {"devices", "graph", "importers", "kernels", "placement"},
    "oracle": {"graph", "importers", "kernels", "devices"},
    "exports": {
        "_version", "changes", "importers", "step_times", "verdicts",
        "comparison", "cut_check", "devices", "executor", "explain", "graph", "partition", "placement", "refusal",
        "result", "scheduling", "surprises",
    },
    "views": {
        "changes", "doctor", "requirements", "step_times",
        "comparison", "costs", "cut_check", "devices", "executor", "explain", "graph", "kernels", "partition",
        "placement", "result", "schedule_check", "scheduling", "surprises",
    },
}  # fmt: skip
SCHEDULE = {
    "costs": {"devices", "graph", "importers", "kernels", "partition", "placement"},
    "executor": {"costs", "devices", "graph", "kernels", "partition", "placement"},
    "scheduling": {"costs", "devices", "executor", "graph", "partition", "placement"},
    "step_times": {"changes", "scheduling"},
    "learnt_order": {"costs", "executor", "oracle", "partition", "scheduling"},
    "schedule_check": {
        "costs", "devices", "executor", "kernels", "learnt_order", "oracle", "partition", "scheduling", "simulation",
    },
}  # fmt: skip
TENSORFLOW = ("simplace/oracle/inside/", "simplace/oracle/measure/inside/", "simplace/kernels/capture.py")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_its_one_job(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} begins with the one sentence that is its job"
    assert docstring.splitlines()[0].endswith((".", ":")), f"{path}: the first line is a whole sentence"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tensorflow_is_imported_in_named_places_only(path):
    name = path.relative_to(ROOT).as_posix()
    uses = {module for module in imported(path) if module.split(".")[0] in ("tensorflow", "keras")}
    assert not uses or name.startswith(TENSORFLOW), f"{name} imports {sorted(uses)}"


def test_the_drawing_kit_knows_nothing_of_simplace():
    for path in (ROOT / "viz").rglob("*.py"):
        assert not {m for m in imported(path) if m.split(".")[0] == "simplace"}, path


def test_imports_only_go_down():
    allowed = {**ALLOWED, **SCHEDULE}
    wrong = []
    for path in (ROOT / "simplace").rglob("*.py"):
        parts = path.relative_to(ROOT / "simplace").with_suffix("").parts
        layer = parts[0]
        uses = {m.split(".")[1] for m in imported(path) if m.startswith("simplace.")} - {layer, "errors"}
        known = {name for name in uses if name in allowed or name == "errors"}
        wrong += [f"{'/'.join(parts)} -> {name}" for name in sorted(known - allowed.get(layer, set()))]
    assert wrong == []
