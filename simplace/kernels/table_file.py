"""The file of a kernel table: a zip with `about.json`, `ops.binpb` (an `OpList`) and `kernels.binpb` (a `KernelList`).

A file may hold a difference only: `about.json` then names in "base" the version of a shipped file that is whole, and
lists in "differing" the ops whose definition or kernels are not those of the base. What the file says of these ops
is all there is of them.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from simplace.errors import MalformedError, TargetError, UnreadableError
from simplace.graph import protos
from simplace.input_file import MIB, parse_json, read_members

SUFFIX = ".kernels.zip"
_NUMBERS = re.compile(r"\d{1,9}(\.\d{1,9})*(?!\d)")
_LIMITS = {"about.json": MIB, "ops.binpb": 64 * MIB, "kernels.binpb": 64 * MIB}
_FOLDER = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class TableFile:
    """Record of the messages of a file by op name, the base's included.

    Kernels are encoded messages, as there are many more than anybody asks for, in the order of registration.
    """

    about: Mapping[str, Any]
    ops: Mapping[str, Any]
    kernels: Mapping[str, list[bytes]]


def read_table_file(path: str | Path) -> TableFile:
    """Read a table file, whole or a difference; raise `TargetError` where it is none."""
    try:
        members = read_members(path, _LIMITS)
        about = parse_json(members["about.json"])
        ops = protos.message_class("OpList").FromString(members["ops.binpb"])
        kernels = protos.sealed_class("KernelList").FromString(members["kernels.binpb"])
        about["name"], about["version"]
    except (MalformedError, KeyError, TypeError, DecodeError) as error:
        raise TargetError(
            f"{path} is not a kernel table: {error}; make one with `python -m simplace.oracle.child.capture PATH`"
        ) from error
    except UnreadableError as error:
        raise TargetError(f"kernel table {path} cannot be read: {error}") from error
    by_op: dict[str, list[bytes]] = {}
    for op, same in groupby(kernels.kernel, _encoded_op):  # nearly all that an op has stand together
        by_op.setdefault(_read_op(op), []).extend(same)
    own = TableFile(about, {message.name: message for message in ops.op}, by_op)
    return own if "base" not in about else _on_base(own, read_table_file(shipped_path(about["base"])))


def _encoded_op(kernel: bytes) -> bytes:
    """Return the field of an encoded `KernelDef` that says the op, its first one, of less than 128 bytes."""
    return kernel[: kernel[1] + 2]


def _read_op(field: bytes) -> str:
    return str(protos.message_class("KernelDef").FromString(field).op)


def write_table_file(path: str | Path, about: Mapping[str, Any], ops: bytes, kernels: bytes) -> None:
    """Write a table file; the same content makes the same bytes."""
    entries = {"about.json": json.dumps(about, indent=1).encode(), "ops.binpb": ops, "kernels.binpb": kernels}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # no time of day: same bytes


def shipped_path(version: str) -> Path:
    """Return the place of the file that comes with simplace for a version."""
    return _FOLDER / (version + SUFFIX)


def shipped_versions() -> tuple[str, ...]:
    """List the versions whose files come with simplace, oldest first."""
    names = (entry.name for entry in _FOLDER.iterdir() if entry.name.endswith(SUFFIX))
    return tuple(sorted((name.removesuffix(SUFFIX) for name in names), key=version_key))


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which order it; what follows them ("-rc1") does not count.

    >>> version_key("2.16.2"), version_key("2.21.0-rc1"), version_key("2.18"), version_key("nightly")
    ((2, 16, 2), (2, 21, 0), (2, 18), ())
    >>> version_key("2." + 5000 * "1")  # no version, and more digits than Python reads
    (2,)
    """
    found = _NUMBERS.match(version)
    return tuple(map(int, found[0].split("."))) if found else ()


def is_release_of(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one; a wanted "2.18" stands for every patch release of it.

    >>> [is_release_of("2.18.1", wanted) for wanted in ("2.18.1", "2.18", "2.18.0", "2.1", "2")]
    [True, True, False, False, False]
    """
    numbers = version_key(wanted)
    return version == wanted or (len(numbers) == 2 and version_key(version)[:2] == numbers)


def _on_base(own: TableFile, base: TableFile) -> TableFile:
    differing = set(own.about["differing"])
    ops = {name: message for name, message in base.ops.items() if name not in differing}
    kernels = {name: messages for name, messages in base.kernels.items() if name not in differing}
    return TableFile(own.about, {**ops, **own.ops}, {**kernels, **own.kernels})
