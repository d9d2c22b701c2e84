"""One graph that TensorFlow would place, with all that placement depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from simplace.devices.device_name import DeviceName
from simplace.graph.constant_numbers import Numbers
from simplace.graph.dtypes import count_tensor_bytes
from simplace.graph.node_def import FunctionDef, GraphDef, Shape
from simplace.graph.op_kinds import INTS_ON_DEVICE
from simplace.program.dataset_roles import FunctionMaker, describe_function

EAGER_OPS = "eager ops"  # what stands for the name of a program where ops ran outside of any
Kind = Literal["function", "session", "graph", "compiled", "dataset", "call", "eager"]


FIRST_CALL = "fn_with_cond"  # how tf.function names its first call, where that may initialize variables


@dataclass(frozen=True, slots=True)
class NodeNotes:
    """Record of notes on a node for the program's author.

    `at` is the user's "file:line" that made the op, `device_at` the line of the `tf.device` that requested its
    device, `shapes` the shape of each output, `variable` the variable that an argument is a handle to. `known_as` is
    the node's name with the layers of Keras as the user named them. Anything unknown is "" or (). `is_by_library` tells
    that a library, such as a strategy, requested the device for that line.
    """

    at: str = ""
    device_at: str = ""
    shapes: tuple[Shape, ...] = ()
    variable: str = ""
    is_by_library: bool = False
    known_as: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Describe a resource that a function is given: its handle's name, its device, the user's line that made it.

    `dtype` and `shape` are those of a variable's value, as far as they are known.
    """

    name: str
    device: str
    made_at: str
    is_variable: bool
    dtype: int | None = None
    shape: Shape = None

    @property
    def size(self) -> int | None:
        """Return the bytes of a variable's value, None where its type or shape leaves them open.

        >>> Resource("v", "/GPU:0", "", True, 1, (2, 3)).size, Resource("v", "/GPU:0", "", True, 1, (-1, 3)).size
        (24, None)
        """
        return None if self.dtype is None else count_tensor_bytes(self.dtype, self.shape)


def read_resources(described: Iterable[Sequence[Any]]) -> dict[int, Resource]:
    """Return the resources among a function's inputs by number, from rows of a number and the fields of `Resource`.

    >>> read_resources([[3, "v", "/GPU:0", "model.py:1", True, 1, [2, 3]]])[3].shape
    (2, 3)
    """
    return {
        number: Resource(name, device, made_at, is_variable, dtype, None if shape is None else tuple(shape))
        for number, name, device, made_at, is_variable, dtype, shape in described
    }


@dataclass(frozen=True, slots=True)
class Pin:
    """Suppose that the program had requested `device` for the nodes whose name matches a glob pattern."""

    pattern: str
    device: DeviceName


@dataclass(frozen=True, slots=True)
class SessionRun:
    """Name what one run of a session feeds and fetches, as "node:slot", and the nodes it only runs.

    All are in the order in which TensorFlow numbers them. `by_rendezvous` says that feeds are received and fetches are
    sent, instead of being arguments and results: so it is in a partial run, and where a server runs the session. The
    rest is what a callable may ask for: a device for a feed or a fetch, and pairs of tensors, the first of which takes
    the place of the second.
    """

    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    by_rendezvous: bool = False
    feed_devices: tuple[tuple[str, str], ...] = ()
    fetch_devices: tuple[tuple[str, str], ...] = ()
    connections: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """Pair what a run of a session feeds and fetches with the user's line of the first run that did so."""

    run: SessionRun
    at: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Record of the op whose kernel calls a function, and of how TensorFlow instantiates the function for it.

    `program` and `node` name the op ("" for one that ran eagerly), `op` is its type, `attr` the attribute that has
    the function, `role` says what that is for the op, `at` is the user's line. With `takes_default` what requests no
    device goes to that of the op. The dataset's graph is rewritten so many times first (lowering/rewrite_utils.py),
    with the optimizers switched that the program switches; `unreplayed` is one by which TensorFlow has rewritten the
    function and that is not replayed, "" for none. `upstream` is the function of the dataset that the op takes, "" if
    it calls none; the last `captured` arguments are what the function captures. What tf.data's optimizers made, and
    what that calls, `is_made`: as it is. Of a graph that is `sunk_before`, Grappler has moved ops into branches
    before any dataset's graph is rewritten. Of functions that are `opened`, it is the order: see lowering/cf_sink.py.
    `beside` are all functions of the graph that a node of a graph calls one of, () for one of an op that ran eagerly.
    Of a graph that has functions which no dataset calls, Grappler may optimize those that a dataset's function calls,
    too: `may_be_optimized`. A call `is_inlined` where Grappler puts the function in its place once the graph is placed,
    so that nothing instantiates it. `called` is what the user's line calls of a library, so that the op runs, "" where
    that is not known.
    """

    program: str
    node: str
    op: str
    role: str
    at: str
    takes_default: bool = True
    rewrites: int = 0
    switched: tuple[str, ...] = ()
    unreplayed: str = ""
    upstream: str = ""
    captured: int = 0
    is_made: bool = False
    sunk_before: bool = False
    opened: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    may_be_optimized: bool = False
    is_inlined: bool = False
    called: str = ""
    attr: str = ""


@dataclass(frozen=True, slots=True)
class Feed:
    """Name a function of a dataset that makes elements which a program is given, by its full name.

    `is_batched` tells that the dataset makes batches of what it returns.
    """

    function: str
    is_batched: bool


@dataclass(frozen=True, slots=True)
class Program:
    """Describe one graph to place.

    `function` names the library function that is called (kind "function") and is None otherwise, where `graph.nodes`
    is what a session places. Of kind "compiled" is a function that XLA compiles whole: `graph.nodes` is the one call.
    Functions of the kinds "dataset" and "call" are called by the kernel of an op, of which `caller` is the record: a
    dataset's, or a call that was not inlined.
    `role` is what the function is to its user where the name does not say it, such as "fit, train step" of Keras, ""
    for any other; `owner` numbers the `tf.function` that it is a trace of, 0 where that is not known; `at` is the
    user's line of the first call; `is_internal` tells that TensorFlow made that function, and calls it, for the user's
    ops. `label` tells the program from all others of a run, "" where its name does.
    `arg_devices` holds a full device name per function input. `scope` is the device scope around the call, as a device
    name, "" without one. `soft_placement` is what the program set.
    `notes` maps a function's name ("" for the graph itself) to notes by node name.
    `kept_devices` are the devices of stateful nodes that an earlier run of the session placed, by node name.
    `pruned_to` is the one run whose part of the graph is placed (place_pruned_graph), None for the whole graph.
    `inlining` is what a session's options say of do_function_inlining. `is_single_threaded` tells that its executor is
    SINGLE_THREADED_EXECUTOR, which runs If, Case and While as they are.
    `rewriter` is what the program, or the session, set of Grappler: a serialized RewriterConfig, b"" for nothing.
    `has_grappler` is whether TensorFlow runs it at all, `inlines_later` whether it inlines calls then.
    `resources` describes the resources among the arguments, by number, as far as they were seen; `datasets` has the
    numbers of the variants that hold a dataset.
    `given_shapes` are those of the arguments and elements of the first call that the graph leaves open: what follows
    from them stands in `notes`.
    `given_values` are the integers and bools that arguments of the first call were, by number: scalars and short
    vectors, as far as they were at hand. `is_sized_by_values` tells that shapes in `notes` follow from them, too.
    `observed_shapes` are those of what kernels put out in a run, by node and output, where TensorFlow logged them.
    `runs` are those that happened of a session, each kind once, in the order of the first.
    `feeds` are the functions of the datasets outside of the graph that its arguments come from.
    `handlers` has by status code the user's line of the `except` that takes an error of that code from the first call,
    so that the program goes on; "" where it went on after its refusal in a way that is not known. `raised` has the
    codes of the errors that first calls ended with in the run.
    `xla_error` is what XLA says against compiling the function, besides what it has no kernel for; "" for nothing.
    `is_lowered` says that XLA made its own form of the function on the CPU, when the run asked it.
    `copy_error` is what TensorFlow said of an argument that it could not copy to where XLA compiles the function.
    `rewritten` is the library as rewritten where that has functions which the graph's has not.
    `makers` has by full name what the functions that datasets call are made of, as far as the run told.
    `pins` are requests to suppose; with any, this is a what-if and not what the program says.
    """

    name: str
    kind: Kind
    graph: GraphDef
    function: str | None = None
    arg_devices: tuple[str, ...] = ()
    scope: str = ""
    soft_placement: bool = True
    notes: Mapping[str, Mapping[str, NodeNotes]] = field(default_factory=dict)
    kept_devices: Mapping[str, str] = field(default_factory=dict)
    observed_shapes: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    pruned_to: SessionRun | None = None
    inlining: bool = False
    is_single_threaded: bool = False
    rewriter: bytes = b""
    has_grappler: bool = True
    inlines_later: bool = True
    resources: Mapping[int, Resource] = field(default_factory=dict)
    datasets: frozenset[int] = frozenset()
    pins: tuple[Pin, ...] = ()
    caller: Caller | None = None
    role: str = ""
    owner: int = 0
    is_internal: bool = False
    at: str = ""
    label: str = ""
    given_shapes: tuple[tuple[str, Shape], ...] = ()
    given_values: Mapping[int, Numbers] = field(default_factory=dict)
    is_sized_by_values: bool = False
    runs: tuple[ObservedRun, ...] = ()
    feeds: frozenset[Feed] = frozenset()
    handlers: Mapping[str, str] = field(default_factory=dict)
    raised: frozenset[str] = frozenset()
    xla_error: str = ""
    is_lowered: bool = False
    copy_error: str = ""
    rewritten: Mapping[str, FunctionDef] = field(default_factory=dict)
    makers: Mapping[str, FunctionMaker] = field(default_factory=dict)

    @property
    def known_as(self) -> str:
        """Return what the function is to its user where its name does not say it, "" where it does.

        That is its role, of one that a dataset calls what it is for and whose it is: "map: normalise".
        """
        if self.kind != "dataset" or self.caller is None or self.function is None:
            return self.role
        return describe_function(self.caller.op, self.caller.attr, self.function, self.makers, self.caller.called)

    @property
    def is_loop_body(self) -> bool:
        """Return whether it is the body of a `for` loop over a dataset, which AutoGraph makes a function of that."""
        return self.kind == "dataset" and self.known_as.partition(":")[0] == "for"

    @property
    def title(self) -> str:
        """Return the name that a user knows the program by, unlike that of any other program of the run."""
        return self.label or self.name

    @property
    def inlines_calls(self) -> bool:
        """Return whether the function calls in the graph are inlined before it is placed, as in functions they are."""
        return self.inlining or self.kind == "function"

    @property
    def runs_unplaced(self) -> bool:
        """Return whether a dataset's kernel runs the function whole on its own device: TensorFlow does not place it.

        So it is with functions that keep integers there (`FunctionMetadata::Create` of captured_function.cc), such as
        those by which a strategy's datasets take elements over to a GPU.
        """
        function = self.graph.library.get(self.function or "")
        return self.kind == "dataset" and function is not None and function.attrs.get(INTS_ON_DEVICE) is True

    @property
    def is_called(self) -> bool:
        """Return whether a function is called, so that what requests no device goes to that of the call."""
        return self.function is not None or self.kind == "compiled"

    def catches(self, *codes: str) -> str | None:
        """Return the line of the `except` that takes errors of all these codes, "" unknown; None if there is none."""
        return self.handlers[codes[0]] if codes and all(code in self.handlers for code in codes) else None

    def with_soft_placement(self, soft: bool) -> Program:
        """Return the same program with soft placement on or off."""
        return self if soft == self.soft_placement else replace(self, soft_placement=soft)

    def with_rewritten(
        self,
        made_of: Mapping[str, Mapping[str, str]],
        origins: Mapping[str, Mapping[str, tuple[str, str]]],
        library: Mapping[str, FunctionDef],
    ) -> Program:
        """Return the same program with what rewriting its functions made: notes on fused nodes, and other functions.

        `made_of` has by function the node that each fused one is made of first, `origins` by function that was made,
        which the library has, the function and the node that each of its nodes was.
        """
        notes: dict[str, Mapping[str, NodeNotes]] = {}
        for function, known in self.notes.items():
            if made_of.get(function):
                made = {node: known[first] for node, first in made_of[function].items() if first in known}
                notes[function] = {**known, **made}
        for function, nodes in origins.items():
            found = {node: self.notes.get(of, {}).get(name) for node, (of, name) in nodes.items()}
            notes[function] = {node: note for node, note in found.items() if note is not None}
        return replace(self, notes={**self.notes, **notes}, rewritten=library) if notes or library else self
