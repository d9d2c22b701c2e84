"""Text files that a terminal can show: control characters are written as the format's own escapes."""

from __future__ import annotations

import re

# The second row of control characters with DEL, and marks that end a line or reorder the text around them. The first
# row is escaped by the formats themselves.
_CHARACTERS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_STEERING, _IN_XML = re.compile(f"[{_CHARACTERS}]"), re.compile(f"[\r{_CHARACTERS}]")


def escape_json(text: str) -> str:
    r"""Return JSON text with escapes, where such characters stand in strings only.

    >>> print(escape_json('"a\x9b"'))
    "a\u009b"
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escape_xml(text: str) -> str:
    r"""Return XML with escapes, where such characters stand in text and attributes only.

    >>> escape_xml("<a>\x9b</a>")
    '<a>&#x9b;</a>'
    """
    return _IN_XML.sub(lambda found: f"&#x{ord(found[0]):x};", text)


def escape_proto(text: str) -> str:
    r"""Return protobuf's text form with escapes, where such characters stand in strings only.

    >>> print(escape_proto('name: "a\x9b"'))
    name: "a\302\233"
    """
    return _STEERING.sub(lambda found: "".join(f"\\{byte:o}" for byte in found[0].encode()), text)
