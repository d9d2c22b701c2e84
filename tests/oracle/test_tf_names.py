"""TensorFlow's private names: listed, reached through one module, and patched at one place. No test here imports it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from simplace.oracle.child import patches, tf_names
from simplace.oracle.child.patches import PatchError, find_original, patch_method, restore_method
from simplace.oracle.child.tf_names import Use, describe_missing, find_missing

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "simplace").rglob("*.py"))
CHILD = [path for path in MODULES if path.parent.name in ("child", "live")]
ONE_PLACE = ROOT / "simplace/oracle/child/tf_private.py"
USES = (tf_names.PLACEMENTS, *tf_names.OPTIONAL, tf_names.STEPS, tf_names.GRAPPLER, tf_names.WATCH)
REPLACING = ("patches.py", "entry_points.py")  # the second puts back what it replaces when nobody watches
LISTED = {each for use in USES for name in use.names for each in name.partition(":")[2].split("|")}
OF_PYTHON = {"os", "threading", "atexit", "os.environ"}


def label(path: Path) -> str:
    return str(path.relative_to(ROOT / "simplace"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def private_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("tensorflow."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tensorflow":
            yield str(node.module)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("tf.python", "tf._", "tf.__")):
            yield ast.unparse(node)


def aliases(tree: ast.AST) -> dict[str, str]:
    """Map the names under which a module has imported TensorFlow's private modules to what these are called."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "simplace.oracle.child.tf_private":
            found.update({alias.asname or alias.name: alias.name for alias in node.names})
    return found


def chains(tree: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """Yield "Class.method" for each use of a private module that has been imported."""
    for node in ast.walk(tree):
        head, _, rest = ast.unparse(node).partition(".") if isinstance(node, ast.Attribute) else ("", "", "")
        if head in modules and "(" not in rest:
            yield rest


def calls_of(tree: ast.AST, *functions: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            yield node


def patched_names(tree: ast.AST) -> list[ast.expr]:
    """Return the name of each method that a module patches, or calls behind its patches."""
    return [call.args[1] for call in calls_of(tree, "patch_method", "find_original", "restore_method")]


@cache
def patched_literals() -> frozenset[str]:
    """Return the names of methods that any module patches, as far as they are written there."""
    names = (name for path in MODULES for name in patched_names(tree_of(path)))
    return frozenset(str(name.value) for name in names if isinstance(name, ast.Constant))


def own_names(tree: ast.AST) -> set[str]:
    """Return the names of functions and classes that a module defines."""
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("path", [path for path in MODULES if path != ONE_PLACE], ids=label)
def test_private_modules_are_imported_at_one_place(path: Path) -> None:
    assert list(private_imports(tree_of(path))) == []


@pytest.mark.parametrize("path", CHILD, ids=label)
def test_what_is_used_of_private_modules_is_listed(path: Path) -> None:
    used = set(chains(tree_of(path), aliases(tree_of(path))))
    assert {one for one in used if not any(f"{one}.".startswith(f"{name}.") or f"{name}.".startswith(f"{one}.")
                                           for name in LISTED)} == set()  # fmt: skip


@pytest.mark.parametrize("path", CHILD, ids=label)
def test_private_attributes_are_listed(path: Path) -> None:
    listed = {part for name in LISTED for part in name.split(".")}
    unlisted = set()
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        is_own = node.attr.startswith("_simplace") or node.attr in own_names(tree_of(path))
        is_foreign = ast.unparse(node.value) not in {"self", "super()", *OF_PYTHON}
        if is_foreign and not is_own and node.attr not in listed:
            unlisted.add(ast.unparse(node))
    assert unlisted == set()


def test_what_is_listed_is_used() -> None:
    words = set()
    for path in CHILD:
        if path.name != "tf_names.py":
            words |= {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
            words |= {str(node.value) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)}
    computed = {"_compute_pluggable_device_options", "_compute_gpu_options"}  # devices.py chooses by version
    assert {name for name in LISTED if name.split(".")[-1] not in words | computed} == set()


@pytest.mark.parametrize("path", [path for path in CHILD if path.name not in REPLACING], ids=label)
def test_methods_are_replaced_by_patch_method_alone(path: Path) -> None:
    patched = patched_literals() - {"log_device_placement"}  # which is also a field of a session's configuration
    modules = {**aliases(tree_of(path)), "tf": "tf"}
    assignments = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Assign)]
    targets = [one for node in assignments for one in node.targets if isinstance(one, ast.Attribute)]
    replaced = [one for one in targets if ast.unparse(one).partition(".")[0] in modules or one.attr in patched]
    assert [ast.unparse(each) for each in [*replaced, *calls_of(tree_of(path), "setattr")]] == []


def test_a_patched_method_is_listed() -> None:
    ends = {name.split(".")[-1] for name in LISTED}
    named = [name for path in CHILD if path.name != "patches.py" for name in patched_names(tree_of(path))]
    assert len(named) > 30
    keras = {"add_weight", "__call__", "__new__", "_resolve_auto_jit_compile"}
    python = {"warn", "fork_exec", "_fork_exec", "execv", "system"}
    constants = {str(each.value) for each in named if isinstance(each, ast.Constant)}
    assert constants - ends - keras - python == set()


def test_a_declared_order_names_modules_that_patch() -> None:
    stems = {path.stem for path in CHILD}
    assert {each for order in patches.ORDER.values() for each in order} <= stems


USE = Use("sessions", ("decoder:JSONDecoder.decode", "decoder:JSONDecoder.parse_float", "decoder:gone|JSONDecoder"))
GONE = Use("clusters", ("decoder:JSONDecoder.gone", "nowhere:x"))


def test_a_name_is_a_member_or_an_attribute_that_methods_set_or_one_of_two() -> None:
    assert find_missing(USE, "json") == []
    assert find_missing(GONE, "json") == ["decoder:JSONDecoder.gone", "nowhere:x"]


def test_what_is_missing_is_one_line() -> None:
    assert describe_missing([USE], "2.99.0", "json") == ""
    assert describe_missing([USE, GONE], "2.99.0", "json") == (
        "TensorFlow 2.99.0 is not among the versions that simplace is tested with (2.16.2 to 2.21.0), and lacks "
        "private names; what does not work: clusters (for want of decoder:JSONDecoder.gone, nowhere:x)."
    )


class Session:
    """Stand for a class of TensorFlow."""

    def run(self, value: int) -> list[str]:
        return [f"run {value}"]

    @property
    def soft(self) -> bool:
        return True


def hook(module: str) -> SimpleNamespace:
    """Return a hook of a module, which adds the module's name to what a method returns."""

    def wrap(method):
        return lambda self, value: [module, *method(self, value)]

    wrap.__module__ = f"simplace.oracle.child.{module}"
    return wrap


@pytest.fixture
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(patches.ORDER, "Session.run", ("sessions", "python_facts"))
    yield
    for owner, name in [(known.owner, name) for (_, name), known in patches._patched.items()]:
        restore_method(owner, name)
    assert Session().run(1) == ["run 1"]


@pytest.mark.usefixtures("_restored")
def test_modules_hook_into_a_method_in_the_declared_order() -> None:
    patch_method(Session, "run", hook("sessions"))
    patch_method(Session, "run", hook("python_facts"))
    assert Session().run(3) == ["python_facts", "sessions", "run 3"]
    assert find_original(Session, "run")(Session(), 3) == ["run 3"]


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(
    ("first", "second"),
    [("sessions", "sessions"), ("python_facts", "sessions"), ("sessions", "devices")],
    ids=["twice", "against the order", "not declared"],
)
def test_any_other_second_patch_raises(first: str, second: str) -> None:
    patch_method(Session, "run", hook(first))
    with pytest.raises(PatchError, match=rf"^Session.run is patched by {first}, so {second} cannot patch it now$"):
        patch_method(Session, "run", hook(second))
    assert Session().run(3) == [first, "run 3"]


@pytest.mark.usefixtures("_restored")
def test_a_property_is_handed_over_as_it_is() -> None:
    patch_method(Session, "soft", lambda setting: property(lambda self: not setting.fget(self)))
    assert not Session().soft
    with pytest.raises(PatchError):
        patch_method(Session, "soft", lambda setting: setting)
