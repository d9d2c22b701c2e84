"""The architecture, measured: imports only go down, TensorFlow is imported in named places."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for package in ("simplace", "viz") for path in (ROOT / package).rglob("*.py"))

# Who may import whom inside simplace, besides errors; a name stands for a package or a top-level module.
ALLOWED = {
    "__init__": {"_version", "library", "targets", "placement", "scheduling"},
    "library": {"targets", "exports", "machine_file", "result", "views"},
    "__main__": {"cli"},
    "cli": {"_version", "commands"},
    "commands": {
        "costs", "exports", "graph", "kernels", "machine_file", "oracle", "progress", "result", "schedule_check",
        "scheduling", "targets", "views",
    },
    "agreement": {"comparison", "devices", "graph", "kernels", "oracle", "placement", "simulation"},
    "targets": {
        "call_device", "comparison", "devices", "graph", "importers", "kernels", "oracle", "progress", "result",
        "simulation",
    },
    "result": {"comparison", "devices", "explain", "graph", "partition", "placement"},
    "simulation": {"call_device", "devices", "graph", "importers", "kernels", "lowering", "placement", "refusal"},
    "comparison": {"devices", "oracle", "placement"},
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
    "partition": {"graph", "kernels", "placement", "devices"},
    "oracle": {"graph", "importers", "kernels", "devices"},
    "exports": {
        "comparison", "devices", "executor", "explain", "graph", "partition", "placement", "refusal", "result",
        "scheduling", "surprises",
    },
    "views": {
        "comparison", "costs", "devices", "executor", "explain", "graph", "kernels", "partition", "placement", "result",
        "schedule_check", "scheduling", "surprises",
    },
}  # fmt: skip
SCHEDULE = {
    "costs": {"devices", "graph", "importers", "kernels", "partition", "placement"},
    "executor": {"costs", "devices", "graph", "kernels", "partition", "placement"},
    "scheduling": {"costs", "devices", "executor", "graph", "partition", "placement"},
    "schedule_check": {"costs", "oracle", "placement", "scheduling"},
}  # fmt: skip
TENSORFLOW = ("simplace/oracle/inside/", "simplace/oracle/measure/child.py", "simplace/kernels/capture.py")


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
