"""Run a Jupyter notebook's cells in this process and give each the outputs that a notebook would store.

What a kernel adds (its own process, completion, widgets) plays no part in what an output is: a value is shown by its
`_repr_html_`, `_repr_svg_` and `repr`, as IPython does. Of magics there is `%%writefile`.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KINDS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def run(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each code cell with its outputs; cells share one namespace and write into the working directory."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    codes = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for number, cell in enumerate(codes, start=1):
        yield cell, _outputs("".join(cell["source"]), namespace, number)


def _outputs(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    head, _, rest = source.partition("\n")
    if head.startswith("%%writefile "):
        file = Path(head.split()[1])
        said = f"{'Overwriting' if file.exists() else 'Writing'} {file}\n"
        file.write_text(f"{rest}\n", encoding="utf-8")
        return [_stream(said)]
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace) if last else None
    outputs = [_stream(printed.getvalue())] if printed.getvalue() else []
    return outputs if value is None else [*outputs, _result(value, number)]


def _stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def _result(value: object, number: int) -> dict[str, Any]:
    shown = {kind: getattr(value, method)() for kind, method in KINDS.items() if hasattr(value, method)}
    data = {kind: text.splitlines(keepends=True) for kind, text in (shown | {"text/plain": repr(value)}).items()}
    return {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
