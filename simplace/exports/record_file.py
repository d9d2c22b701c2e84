"""TFRecord framing: each record with its length and the masked CRC-32C of both."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
_MASK_DELTA = 0xA282EAD8


def records(payloads: Iterable[bytes]) -> bytes:
    """Frame records one after the other (tensorflow/core/lib/io/record_writer.cc)."""
    return b"".join(_framed(payload) for payload in payloads)


def crc32c(data: bytes) -> int:
    """Compute the CRC-32C of `data`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _framed(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + _masked(length) + payload + _masked(payload)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)
