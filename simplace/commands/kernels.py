"""`simplace kernels`: list the device types and data types an op has kernels for."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from simplace.commands import options as words
from simplace.commands import output, terminal
from simplace.errors import SimplaceError


def add(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("kernels", help="list the device types and data types an op has kernels for")
    parser.add_argument("op", metavar="OP", help="an op's name, such as MatMul")
    parser.add_argument("--dtype", metavar="D", help="only kernels that take this data type, such as int32")
    words.add_kernels(parser)
    parser.set_defaults(command=_run_kernels)


def _run_kernels(options: argparse.Namespace) -> int:
    from simplace.graph import dtypes
    from simplace.kernels.extra import load_extra
    from simplace.kernels.installed import installed_version
    from simplace.kernels.op_kernels import kernel_rows
    from simplace.kernels.registry import KernelTable
    from simplace.views.text.kernel_table import kernel_table, lacking_notes, xla_note
    from viz import to_text

    table = KernelTable.shipped(options.tensorflow or installed_version())
    if options.kernels:
        table = table.with_extra(load_extra(Path(options.kernels)))
    try:
        dtype = dtypes.parse_dtype(options.dtype) if options.dtype else None
    except ValueError as error:
        raise SimplaceError(f"{error}; one is float32, int64 or string") from None
    rows = kernel_rows(table, options.op, dtype)
    notes = () if dtype is None else lacking_notes(table, options.op, dtype)
    xla = xla_note(table, options.op)
    notes = (*notes, xla) if xla else notes
    output.print_text(to_text(kernel_table(options.op, rows, table.name, notes), terminal.find_width(sys.stdout)))
    return 0
