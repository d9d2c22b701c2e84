"""The architecture, measured: imports only go down, TensorFlow is imported in named places."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for package in ("simplace", "viz") for path in (ROOT / package).rglob("*.py"))

# The rule of layers: a package (or a module at the root) imports those of lower rows, and of its own row those to the
# left of it.
LAYERS = (
    ("words", "_version errors progress input_file devices graph"),
    ("records", "machine kernels program"),
    ("stages", "importers oracle lowering placement partition costs executor"),
    ("questions", "pipeline explain compare analysis result changes checks doctor measure optimize"),
    ("outputs", "views exports report suggestions"),
    ("doors", "targets api watching viewers testing __init__ commands cli __main__"),
)
ORDER = [name for _, row in LAYERS for name in row.split()]
TENSORFLOW = ("simplace/oracle/child/", "simplace/oracle/live/", "simplace/measure/child/")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Name the modules that a module imports anywhere: at its top, in a function, or for its types only."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {_module(node.module, alias.name) for alias in node.names}
    return frozenset(found)


def _module(package: str, name: str) -> str:
    path = ROOT.joinpath(*package.split("."), name)
    is_module = path.with_suffix(".py").exists() or (path / "__init__.py").exists()
    return f"{package}.{name}" if is_module else package


@cache
def imports_of_simplace() -> nx.DiGraph:
    """Draw the imports between the modules of simplace, all of them."""
    graph = nx.DiGraph()
    for path in (ROOT / "simplace").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        graph.add_node(name)
        graph.add_edges_from((name, used) for used in imported(path) if used.split(".")[0] == "simplace")
    return graph


def layer(module: str) -> str:
    """Name the package at the root that a module belongs to, or the module itself where it stands at the root."""
    return [*module.split("."), "__init__"][1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_its_one_job(path):
    docstring = ast.get_docstring(tree_of(path))
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


def test_no_module_imports_itself_by_a_detour():
    assert [sorted(ring) for ring in nx.strongly_connected_components(imports_of_simplace()) if len(ring) > 1] == []


def test_one_name_stands_for_one_idea():
    """Packages may have their own errors, failures, child process, folders; a command is called as what it shows."""
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    shared = {"errors.py", "failures.py", "process.py", "scratch.py", "memory.py", "schedule.py"}
    assert {name for name, count in names.items() if count > 1} == shared


def test_every_package_has_its_place_in_a_layer():
    assert sorted(ORDER) == sorted({layer(module) for module in imports_of_simplace()})


def test_the_map_shows_the_same_layers():
    page = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (\w+) \| ((?:`\w+` ?)+) \|", page, re.MULTILINE)
    shown = [(row, re.findall(r"\w+", packages)) for row, packages in found]
    assert shown == [(row, [name for name in names.split() if not name.startswith("_")]) for row, names in LAYERS]


def test_imports_only_go_down():
    between = ((user, used) for user, used in imports_of_simplace().edges if layer(user) != layer(used))
    up = [f"{user} -> {used}" for user, used in between if ORDER.index(layer(user)) < ORDER.index(layer(used))]
    assert sorted(up) == []


def test_the_house_has_few_floors_and_a_short_menu():
    packages = nx.DiGraph((layer(user), layer(used)) for user, used in imports_of_simplace().edges)
    packages.remove_edges_from(list(nx.selfloop_edges(packages)))
    assert nx.dag_longest_path_length(packages) + 1 <= 15
    assert len(list((ROOT / "simplace").glob("*.py"))) <= 12


def nodes_of_simplace(kind: type[ast.AST]) -> list[ast.AST]:
    trees = map(tree_of, sorted((ROOT / "simplace").rglob("*.py")))
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, kind)]


def test_no_two_classes_have_one_name() -> None:
    names = Counter(node.name for node in nodes_of_simplace(ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_function_has_more_than_seven_parameters() -> None:
    for function in nodes_of_simplace(ast.FunctionDef):
        given = function.args
        names = [
            arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs) if arg.arg not in ("self", "cls")
        ]
        assert function.name == "__init__" or len(names) <= 7, function.name


def test_few_functions_of_modules_have_names_of_one_word() -> None:
    trees = map(tree_of, sorted((ROOT / "simplace").rglob("*.py")))
    names = [node.name.strip("_") for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    short = [name for name in names if "_" not in name]
    assert len(short) / len(names) <= 0.25, Counter(short).most_common(10)
