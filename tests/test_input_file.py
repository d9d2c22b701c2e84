"""Files that anybody may have written: what is no file, too large, too deep, damaged or a trap gets words at once."""

from __future__ import annotations

import os
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from simplace.errors import MalformedError, UnreadableError
from simplace.input_file import read_bytes, read_json, read_members, read_toml


def refused(call, *arguments) -> str:
    with pytest.raises(UnreadableError) as caught:
        call(*arguments)
    return str(caught.value)


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert refused(read_bytes, tmp_path / "pipe") == "it is a named pipe; give a file"
    assert refused(read_bytes, "/dev/zero") == "it is a device; give a file"
    assert refused(read_bytes, tmp_path) == "it is a directory; give a file"
    assert refused(read_bytes, tmp_path / "loop") == "Too many levels of symbolic links"
    assert refused(read_bytes, tmp_path / "none") == "No such file or directory"


def test_a_name_that_no_file_can_have() -> None:
    assert refused(read_bytes, "a\0b") == "the name contains a NUL character, which no file can have"
    assert refused(read_bytes, "a" * 256).startswith("the name is too long; a file name has at most 255 bytes")
    assert refused(read_bytes, "a/" * 2100).startswith("the name is too long")


def test_a_file_is_measured_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    assert refused(read_bytes, tmp_path / "sparse") == (
        "it has 1,099,511,627,776 bytes, and at most 2,146,435,072 are read"
    )


DEEP = "it is nested more than 100 levels deep"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 101 + "]" * 101, DEEP),
        ("[" * 1_000_000, DEEP),
        ('{"a":' * 200 + "1" + "}" * 200, DEEP),
        ("1" * 5000, "Exceeds the limit"),
        (str(1 << 65), "there is a number in it of more than 64 bits"),
        ("{", "Expecting property name"),
        ("\xff", "'utf-8' codec can't decode"),
    ],
)
def test_json_that_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    assert said in refused(read_json, tmp_path / "a.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 101 + "]" * 101, DEEP),
        ("a = " + "[" * 100_000, DEEP),
        (".".join("a" * 101) + " = 1", DEEP),
        (".".join("a" * 60_000) + " = 1", "there are more than 256 dots in a line"),
        ("a = 0x" + "f" * 17, "there is a number in it of more than 64 bits"),
        ("a = " + "1" * 5000, "Exceeds the limit"),
        ("a = 1\n" * 100_000, "it has 600,000 bytes, and at most 262,144 are read"),
    ],
)
def test_toml_that_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    assert said in refused(read_toml, tmp_path / "a.toml")


def archive(path: Path, content: bytes = b"{}", compression: int = zipfile.ZIP_DEFLATED) -> bytearray:
    with zipfile.ZipFile(path, "w", compression) as made:
        made.writestr("config.json", content)
    return bytearray(path.read_bytes())


def test_a_member_is_read(tmp_path: Path) -> None:
    archive(tmp_path / "a.zip", b"[1]")
    assert read_members(tmp_path / "a.zip", {"config.json": 3, "other": 3}) == {"config.json": b"[1]"}


def test_a_bomb_is_measured_before_it_is_unpacked(tmp_path: Path) -> None:
    archive(tmp_path / "a.zip", bytes(50_000_000))
    said = refused(read_members, tmp_path / "a.zip", {"config.json": 1000})
    assert said == "config.json in it has 50,000,000 bytes, and at most 1,000 are read"


def test_a_bomb_that_lies_about_its_size_is_damaged(tmp_path: Path) -> None:
    data = archive(tmp_path / "a.zip", bytes(50_000_000))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 100)
    (tmp_path / "a.zip").write_bytes(data)
    assert "Bad CRC-32" in refused(read_members, tmp_path / "a.zip", {"config.json": 1000})


def test_an_encrypted_or_strangely_compressed_member(tmp_path: Path) -> None:
    data = archive(tmp_path / "a.zip")
    at = data.rindex(b"PK\x01\x02")
    for offset, value, said in ((8, 1, "is encrypted"), (10, 14, "compressed in a way that is not read (number 14)")):
        changed = bytearray(data)
        changed[at + offset] = value
        (tmp_path / "a.zip").write_bytes(changed)
        assert said in refused(read_members, tmp_path / "a.zip", {"config.json": 1000})


def test_every_damage_of_an_archive_gets_words(tmp_path: Path) -> None:
    data = archive(tmp_path / "a.zip", b'{"a": 1}' * 20)
    for at in range(len(data)):
        for value in (0, 0xFF, data[at] ^ 1):
            changed = bytearray(data)
            changed[at] = value
            (tmp_path / "b.zip").write_bytes(changed)
            with suppress(UnreadableError):
                read_members(tmp_path / "b.zip", {"config.json": 1000})


def test_what_is_no_archive_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"hello")
    with pytest.raises(MalformedError, match="not a zip file"):
        read_members(tmp_path / "a.zip", {"config.json": 1000})
