"""A notebook as a script: its Python cells, each guarded and its last value printed, with few epochs."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

_SHELL = re.compile(r"^\s*[!%]")  # a command for the shell or the notebook
_DROPPED_CELLS = ("%%bash", "%%writefile", "%%html", "%%sh", "%%shell")
_EPOCHS = re.compile(r"(num_|n_|max_|total_|initial_|training_)?epochs", re.IGNORECASE)
_HEAD = "from prelude import _cap_epochs, _print_value, _report_error\n"


def convert_notebook(path: Path) -> str:
    """Return a script that does what a notebook's cells do; what is no Python is left out."""
    parts = [_HEAD]
    for number, source in enumerate(_list_cells(path)):
        body = _CappedEpochs().visit(_parse(source)).body
        if body:
            parts.append(_write_cell(number, body))
    return "\n".join(parts)


def _list_cells(path: Path) -> Iterator[str]:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def _parse(source: str) -> ast.Module:
    """Parse a cell without its commands; one that is no Python then is empty."""
    if source.lstrip().startswith(_DROPPED_CELLS):
        return ast.Module([], [])
    try:
        return ast.parse("\n".join(_drop_commands(source.split("\n"))))
    except SyntaxError:
        return ast.Module([], [])


def _drop_commands(lines: list[str]) -> Iterator[str]:
    """Replace each command, and the lines that go on with it, by what does nothing."""
    goes_on = False
    for line in lines:
        is_command = bool(_SHELL.match(line))
        yield "" if goes_on else re.sub(r"\S.*", "pass", line) if is_command else line
        goes_on = (is_command or goes_on) and line.rstrip().endswith("\\")


def _write_cell(number: int, body: list[ast.stmt]) -> str:
    """Write one cell; an exception ends the cell, as it does in a notebook, and the next one comes."""
    last = body[-1]
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant):
        last.value = ast.Call(ast.Name("_print_value"), [last.value], [])
    futures = [each for each in body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    kept = [each for each in body if each not in futures]
    text = ast.unparse(ast.fix_missing_locations(ast.Module(kept or [ast.Pass()], [])))
    guarded = ast.parse(f"try:\n    pass\nexcept Exception as _error:\n    _report_error({number}, _error)").body[0]
    assert isinstance(guarded, ast.Try)
    guarded.body = ast.parse(text).body
    return ast.unparse(guarded) + "\n"


class _CappedEpochs(ast.NodeTransformer):
    """Cap what is assigned to a name for a number of epochs, or given under one."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Name) and _EPOCHS.fullmatch(target.id):
            node.value = _capped(node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg is not None and _EPOCHS.fullmatch(node.arg):
            node.value = _capped(node.value)
        return node


def _capped(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("_cap_epochs"), [value], [])
