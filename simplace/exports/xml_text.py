"""Text made safe for XML 1.0, which has no way to write most control characters."""

from __future__ import annotations

import re

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_illegal(text: str) -> str:
    r"""Return a text with U+FFFD for each character that no XML document may contain.

    >>> replace_illegal("a\x00b\n<c>")
    'a\ufffdb\n<c>'
    """
    return _ILLEGAL.sub("\ufffd", text)
