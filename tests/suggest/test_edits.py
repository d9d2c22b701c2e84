"""Edits of a file: what they give, and that they leave everything else as it was."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.suggestions.edits import (
    ConflictError,
    Insertion,
    Wrapping,
    apply_edits,
    replace_node,
    wrap_statement,
    write_patch,
)
from simplace.suggestions.source_file import SourceFile

HEADER = 'with tf.device("/GPU:1"):'
PROGRAM = '''\
import tensorflow as tf

@tf.function
def step(x):
    with tf.device("/CPU:0"):
        y = tf.matmul(x,
                      x)  # a product
    text = """two
lines"""
    z = y + 1
    return tf.print(text), z
'''


def program() -> SourceFile:
    return SourceFile("model.py", PROGRAM)


def test_a_scope_names_another_device():
    source = program()
    scope = source.scope_at(5)
    assert scope is not None
    text = apply_edits(source, [replace_node(source, scope.args[0], '"/GPU:0"')])
    assert text == PROGRAM.replace("/CPU:0", "/GPU:0")


def test_neighbours_share_a_scope_and_strings_keep_their_lines():
    source = program()
    wrapped = [wrap_statement(source, source.statement_at(line), HEADER) for line in (8, 10)]
    text = apply_edits(source, wrapped)
    assert text == PROGRAM.replace(
        '    text = """two\nlines"""\n    z = y + 1\n',
        '    with tf.device("/GPU:1"):\n        text = """two\nlines"""\n        z = y + 1\n',
    )


def test_another_line_of_a_statement_is_the_same_statement():
    source = program()
    assert source.statement_at(6) is source.statement_at(7)
    assert [source.statement_at(line) for line in (1, 4, 5)] == [None, None, None]  # an import, a def, a with


def test_a_line_is_inserted_with_the_indentation_of_the_one_before():
    source = program()
    text = apply_edits(source, [Insertion("model.py", 10, "done()")])
    assert text == PROGRAM.replace("    z = y + 1\n", "    z = y + 1\n    done()\n")


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("import tensorflow as tf\nfrom tensorflow import keras\n", "keras", 2),
        ("from tensorflow import keras\nimport tensorflow as tf\n", "tf.keras", 2),
        ("import tensorflow.keras\n", "tensorflow.keras", 1),
        ("def f():\n    import tensorflow as tf\n", "tf", 0),
        ("import tensorflow as tf\n", "", 0),
    ],
)
def test_the_import_after_which_a_name_is_known(text, name, line):
    found = SourceFile("m.py", text).find_import(name)
    assert (found.lineno if found is not None else 0) == line


def test_windows_ends_of_lines_stay():
    source = SourceFile("model.py", PROGRAM.replace("\n", "\r\n"))
    text = apply_edits(source, [wrap_statement(source, source.statement_at(10), HEADER)])
    assert "\r\n" in text
    assert "\n" not in text.replace("\r\n", "")


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([Wrapping("model.py", 6, 7, HEADER), Wrapping("model.py", 7, 7, HEADER)], id="overlap"),
        pytest.param([Wrapping("model.py", 6, 6, HEADER)], id="half a statement"),
    ],
)
def test_edits_that_give_no_program_are_refused(edits):
    source = program() if len(edits) > 1 else SourceFile("model.py", "if 1:\n    a = (\n  1)\nelse:\n    pass\n")
    with pytest.raises(ConflictError):
        apply_edits(source, edits if len(edits) > 1 else [Wrapping("model.py", 1, 2, HEADER)])


def test_other_files_are_not_touched():
    assert apply_edits(program(), [Wrapping("other.py", 1, 1, HEADER)]) == PROGRAM


NAMES = st.sampled_from("abcxyz")
SIMPLE = st.one_of(
    st.builds("{} = f({})".format, NAMES, NAMES),
    st.builds('{} = """one\n  two {}\n"""'.format, NAMES, NAMES),
    st.builds("{} = g(\n 1,\n        {})".format, NAMES, NAMES),
    st.just("pass"),
)


@st.composite
def blocks(draw: st.DrawFn, depth: int = 2) -> list[str]:
    """Draw the lines of a block of statements, some of them with blocks of their own."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            head = draw(st.sampled_from(("if a:", "for x in y:", "def f(b):", "with tf.device(c):")))
            inner = draw(blocks(depth - 1))
            lines += [head, *(f"    {line}" for line in inner)]
        else:
            lines.append(draw(SIMPLE))
    return lines


class _Unwrap(ast.NodeTransformer):
    def visit_With(self, node: ast.With) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        return list(node.body) if ast.unparse(node.items[0].context_expr) == "tf.device('/GPU:1')" else node


@given(blocks(), st.data())
def test_a_wrapped_statement_is_the_statement(lines, data):
    """Without the new scopes, the program is what it was."""
    source = SourceFile("model.py", "\n".join(lines) + "\n")
    found = {id(one): one for i in range(len(source.lines)) if (one := source.statement_at(i + 1)) is not None}
    chosen = data.draw(st.lists(st.sampled_from(list(found.values())), unique_by=id)) if found else []
    text = apply_edits(source, [wrap_statement(source, one, HEADER) for one in chosen])
    assert text.count(HEADER) <= len(chosen)
    assert ast.dump(_Unwrap().visit(ast.parse(text))) == ast.dump(source.tree)


def test_a_patch_of_a_file_without_a_last_newline():
    assert write_patch(SourceFile("m.py", "a = 1"), "a = 2").splitlines() == [
        "--- m.py", "+++ m.py", "@@ -1 +1 @@", "-a = 1", "\\ No newline at end of file", "+a = 2",
        "\\ No newline at end of file",
    ]  # fmt: skip
