"""Write a kernel table as its difference from another one, which keeps simplace small.

Run `python -m simplace.kernels.difference TABLE OUTPUT` for the difference from the newest shipped table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simplace.errors import SimplaceError
from simplace.graph import protos
from simplace.kernels import table_file
from viz.names import visible


def write_difference(table: str | Path, base: str, output: str | Path) -> None:
    """Write what a table file holds otherwise than the shipped file of the version `base`, or lacks.

    An op differs if its definition does, or any of its kernels, or their order; it is written whole.
    """
    own, other = table_file.read_table_file(table), table_file.read_table_file(table_file.shipped_path(base))
    names = sorted({*own.ops, *own.kernels, *other.ops, *other.kernels})
    same = (
        own.ops.get(name) == other.ops.get(name) and own.kernels.get(name) == other.kernels.get(name) for name in names
    )
    differing = [name for name, is_same in zip(names, same, strict=True) if not is_same]
    ops = protos.message_class("OpList")(op=[own.ops[name] for name in differing if name in own.ops])
    kernels = protos.sealed_class("KernelList")(kernel=[one for name in differing for one in own.kernels.get(name, ())])
    table_file.write_table_file(
        output,
        {**own.about, "base": base, "differing": differing},
        ops.SerializeToString(deterministic=True),
        kernels.SerializeToString(deterministic=True),
    )


def main(arguments: list[str]) -> int:
    """Write the difference of one table file from the newest shipped one."""
    if len(arguments) != 2:
        print("usage: python -m simplace.kernels.difference TABLE OUTPUT", file=sys.stderr)
        return 2
    try:
        write_difference(arguments[0], table_file.shipped_versions()[-1], arguments[1])
    except SimplaceError as error:
        print(f"simplace.kernels.difference: {visible(str(error))}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
