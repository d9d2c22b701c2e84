"""The errors that simplace raises.

There are two kinds of errors. One that the user can fix is a `SimplaceError`: one line that names what was seen, where,
what would be allowed and what to try next; the command line catches it once. A bug of simplace is an `assert`
and is caught nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class SimplaceError(Exception):
    """Report something that the user can fix; `str()` is the one line they read.

    `details` is what they want to see before it, such as their own program's traceback. `status` is the exit status
    that it gives a command.
    """

    status = 2

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class DeviceSpecError(SimplaceError):
    """Report a device string or device file that does not parse, or an impossible device set."""


class TargetError(SimplaceError):
    """Report a target (script, file, directory) that cannot be read as what it claims to be."""


class UnreadableError(SimplaceError):
    """Report a file that is none, or too large or too deep to read; the message leaves its name to the caller."""


class MalformedError(UnreadableError):
    """Report a file whose content is not of the format that it should have."""


class ImportRefusedError(TargetError):
    """Report a graph that TensorFlow would not import, with TensorFlow's own message."""


class UnknownOpError(SimplaceError):
    """Report an op that is not in the kernel table in use."""


class ProgramError(SimplaceError):
    """Report a user's program that raised, traced nothing, crashed or ran out of time.

    `status` is the one that the program itself ends with, if it is known: a command's exit status is its program's.
    """

    def __init__(self, message: str, details: str = "", status: int = SimplaceError.status) -> None:
        super().__init__(message, details)
        self.status = status


class NodeNotFoundError(SimplaceError):
    """Report a node name that no placed graph has."""


class AmbiguousNodeError(NodeNotFoundError):
    """Report the end of a node name that several nodes of a graph have."""


class UnknownRuleError(SimplaceError):
    """Report a name that no finding and no reason has."""


class NoStepError(SimplaceError):
    """Report a program whose step cannot be timed, since TensorFlow would fail to run it."""


class RequirementError(SimplaceError):
    """Report a requirement on a placement that does not parse."""


class DrawingError(SimplaceError):
    """Report a figure that cannot be drawn or written."""


def join_choices(names: Iterable[str], limit: int = 12) -> str:
    """Return sorted names as a list for a message: `limit` of them, and a count of the rest.

    >>> join_choices(["b", "a"])
    'a, b'
    >>> join_choices("edcba", limit=3)
    'a, b, c and 2 more'
    """
    ordered = sorted(names)
    head = ", ".join(ordered[:limit])
    rest = len(ordered) - limit
    return f"{head} and {rest} more" if rest > 0 else head


def join_alternatives(names: Sequence[str]) -> str:
    """Return names as alternatives for a message.

    >>> join_alternatives(["a"]), join_alternatives(["b", "a", "c"])
    ('a', 'b, a or c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


class MissingExtraError(SimplaceError):
    """Report a package that is not installed, and which extra of simplace brings it."""


class NoPlacementError(SimplaceError):
    """Report a placement problem without a placement that keeps kernels, pins, groups and memory."""
