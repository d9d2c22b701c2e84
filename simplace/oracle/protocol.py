"""The request to a child process, and the names of the files of its answer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from simplace.machine.machine import Machine, SharedLink, Task

EVENTS = "events.jsonl"  # one JSON object a line, written as things happen, so that a crash loses none of them
LOG = "tensorflow.log"  # what TensorFlow, and other native code, prints to file descriptor 2
OUT = "native.txt"  # what they print to file descriptor 1
PARTITIONS = "partitions"  # the directory of the subgraphs that TensorFlow partitions placed graphs into
GIVEN_VARIABLES = "SIMPLACE_GIVEN_VARIABLES"  # an environment variable: what the user has set of others, as JSON
FORKED_FROM = "SIMPLACE_FORKED_FROM"  # an environment variable: the process that a child was forked from

NO_ROOM = 74  # the exit status of a child that could not write its answer, as EX_IOERR of sysexits.h

Mode = Literal["script", "graph", "saved_model"]


@dataclass(frozen=True, slots=True)
class Options:
    """Record of the options of one run.

    The first `calls` calls of a function and signature are computed (all, where it is negative); later ones return the
    latest values, and an epoch ends early. A function that is placed again at every call ends the run. `timeout` is
    in seconds, None for none. `function` narrows the run to the functions of that Python name, "" takes all.
    `soft_placement` overrides what the program sets, None keeps it. `signature` picks a SavedModel's signature,
    "" takes all. `tags` picks its graph where a SavedModel has several. `partitions` asks for the subgraphs that
    TensorFlow partitions each placed graph into, and turns Grappler off for it. `allocations` asks for what TensorFlow
    allocates and frees in host memory, which its allocator of GPUs then hands out. Without `jit` the program's
    `jit_compile` counts for nothing, so that TensorFlow places what XLA would compile. `sources` are pairs (absolute
    path of a Python file, text that the run takes in its place).
    """

    calls: int = 10
    timeout: float | None = None
    function: str = ""
    soft_placement: bool | None = None
    signature: str = ""
    tags: tuple[str, ...] = ()
    partitions: bool = False
    allocations: bool = False
    jit: bool = True
    sources: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """Record of all that the child needs: what to run, on which machine, and the directory to answer in.

    `registry` is the path that the installed kernel table is wanted at; the child writes it where there is no file.
    """

    mode: Mode
    target: str
    directory: str
    arguments: tuple[str, ...] = ()
    machine: Machine = field(default_factory=Machine)
    options: Options = field(default_factory=Options)
    plugin: str = ""
    registry: str = ""

    def to_json(self) -> str:
        """Return the request as JSON text."""
        return json.dumps(asdict(self), indent=1)


def request_from_json(text: str) -> Request:
    """Return the request that `Request.to_json` wrote.

    >>> request = Request("script", "model.py", "/tmp/x", ("-v",), Machine(tasks=(Task("ps", 0),)))
    >>> request_from_json(request.to_json()) == request
    True
    """
    fields: dict[str, Any] = json.loads(text)
    machine, options = fields.pop("machine"), fields.pop("options")
    machine["virtual_gpus"] = tuple(tuple(limits) for limits in machine["virtual_gpus"])
    machine["visible"] = None if machine["visible"] is None else tuple(machine["visible"])
    machine["tasks"] = tuple(Task(**task) for task in machine["tasks"])
    machine["shared_links"] = tuple(_read_link(**link) for link in machine["shared_links"])
    options["tags"] = tuple(options["tags"])
    options["sources"] = tuple((path, text) for path, text in options["sources"])
    fields["arguments"] = tuple(fields["arguments"])
    return Request(**fields, machine=Machine(**machine), options=Options(**options))


def _read_link(gpus: list[int], tasks: list[str], **fields: Any) -> SharedLink:
    return SharedLink(**fields, gpus=tuple(gpus), tasks=tuple(tasks))
