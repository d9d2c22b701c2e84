"""Calls of functions in the user's own process: each new placement once, the others counted.

TensorFlow places a function anew for other devices of its arguments (GetOrCreateKernelAndDevice of
common_runtime/eager/execute.cc), so a call is looked at if its function, its scope or these devices are new.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from simplace.graph.op_kinds import MUST_COMPILE
from simplace.oracle.child import eager_device
from simplace.oracle.child.called_functions import list_called
from simplace.oracle.child.frame_locals import read_local
from simplace.oracle.child.tensors import (
    describe_resources,
    find_host,
    input_device,
    list_datasets,
    make_empty_list,
    resource_device,
    task_of,
)
from simplace.oracle.child.tf_private import atomic_function, context
from simplace.oracle.live.graph_collection import Window, close_window, is_in_use, open_window

if TYPE_CHECKING:
    from simplace.program.observation import ObservedRefusal

_DEPTH = 40  # frames between a call and the object that is called
_RECORDED = "Functions that ran while the program had TensorFlow record graphs for itself (tf.summary) are not counted."
_OBJECTS = (tf.resource, tf.variant)
_Key = tuple[Any, ...]
_Condition = tuple[str, bool, tuple[str, ...], tuple[int, ...]]  # scope, soft, devices of numbers, handles by object
_backing_device = attrgetter("backing_device")
_Picks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


@dataclass(slots=True, eq=False)
class WatchedCall:
    """Record of a call that TensorFlow placed anew, with all that its placement depends on.

    `library` holds the definitions of all functions that it reaches, its own first, `traced` the graphs that they were
    made from by name, as far as they are known; `shapes` are those of its arguments, None for objects, `resources` and
    `datasets` say which objects. `graphs` are those that TensorFlow collected when it instantiated the function,
    `copied` those of a copy of it that never ran (see `own_instance`), `refused` is the error where it refuses to.
    `home` is the device of the results of a function that XLA compiles whole.
    """

    name: str
    scope: str
    soft_placement: bool
    arg_devices: tuple[str, ...]
    library: tuple[Any, ...]
    traced: dict[str, Any]
    attrs: tuple[Any, ...]
    outputs: int
    inputs: list[tuple[weakref.ref[Any], Any]]
    shapes: tuple[Any, ...]
    resources: list[list[Any]]
    datasets: list[int]
    times: int = 1
    graphs: Any = None
    copied: Any = None
    refused: ObservedRefusal | None = None
    home: str = ""
    has_failed: bool = False

    @property
    def definition(self) -> Any:
        """Return the function's own definition."""
        return self.library[0]

    @property
    def is_compiled(self) -> bool:
        """Return whether XLA compiles the function whole, so that TensorFlow does not place its ops."""
        return bool(self.definition.attr[MUST_COMPILE].b)

    @property
    def is_placed_here(self) -> bool:
        """Return whether the runtime of this process places the function's ops."""
        return not self.is_compiled and not self.is_remote

    @property
    def is_remote(self) -> bool:
        """Return whether another task runs the function."""
        return task_of(self.scope or find_host()) != task_of(find_host())

    def find_inputs(self) -> list[Any]:
        """Return inputs where those of the call were, for a copy that never runs: of what is gone, others."""
        kept = ((ref(), dtype) for ref, dtype in self.inputs)
        both = zip(kept, self.arg_devices, strict=True)
        return [_make_stand_in(dtype, device) if tensor is None else tensor for (tensor, dtype), device in both]


@dataclass(slots=True)
class _Begun:
    """Record of a call that is under way; `window` is None where no graphs are collected."""

    call: WatchedCall
    inputs: Sequence[Any]
    window: Window | None


class WatchedCalls:
    """Observe calls of functions."""

    def __init__(self) -> None:
        self.calls: list[WatchedCall] = []
        self.remarks: dict[str, None] = {}
        self._known: dict[_Key, WatchedCall] = {}
        self._picks: dict[str, _Picks] = {}
        self._places: dict[int, str] = {}  # the device of a resource, by the number of its handle
        self._latest: dict[str, tuple[_Condition, WatchedCall]] = {}
        self._latest_places: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {}
        self._turn = threading.Lock()

    def count_repeated(self, name: str, scope: str, inputs: Any) -> bool:
        """Count a call that is like the latest one of its function; return whether it is."""
        condition, call = self._latest.get(name, (None, None))
        if call is None or condition != self._describe_condition(name, scope, inputs):
            return False
        call.times += 1
        return True

    def begin(self, name: str, scope: str, inputs: Any, attrs: Any, outputs: int) -> _Begun | None:
        """Count a known call; begin to look at a new one."""
        condition = self._describe_condition(name, scope, inputs)
        key = (name, *condition[:-1], self._find_places(name, condition[-1], inputs))
        known = self._known.get(key)
        if known is not None:
            known.times += 1
            self._latest[name] = condition, known
            return None
        call = _describe_call(name, scope, inputs, attrs, outputs)
        with self._turn:
            if key in self._known:
                self._known[key].times += 1
                return None
            self._known[key] = call
            self._latest[name] = condition, call
            self.calls.append(call)
        if call.is_placed_here and is_in_use():
            self.remarks[_RECORDED] = None
            return None
        return _Begun(call, inputs, open_window(call.definition) if call.is_placed_here else None)

    def end(self, begun: _Begun, results: Any, error: BaseException | None) -> None:
        """Find out what TensorFlow has done with a call that ends; a copy is asked where it told nothing."""
        call, window = begun.call, begun.window
        call.has_failed = error is not None
        if window is None:
            call.home = next((str(each.device) for each in results or () if each.dtype != tf.resource), "")
            return
        close_window(window)
        call.graphs = window.graphs
        if call.graphs is None:
            _ask(call, begun.inputs)

    def _describe_condition(self, name: str, scope: str, inputs: Any) -> _Condition:
        """Return what the placement of a call depends on; where there is one device, no inputs are looked at."""
        soft = eager_device.soft_placement()
        if len(context.context()._context_devices or ()) == 1:
            return scope, soft, (), ()
        picks = self._picks.get(name)
        if picks is None:
            picks = self._picks[name] = _make_picks(inputs)
        numbers, handles = picks
        return scope, soft, tuple(map(_backing_device, numbers(inputs))), tuple(map(id, handles(inputs)))

    def _find_places(self, name: str, same: tuple[int, ...], inputs: Any) -> tuple[str, ...]:
        """Return the devices of handles; those of the function's latest call are mostly the same objects."""
        if not same:
            return ()
        latest, places = self._latest_places.get(name, ((), ()))
        if same == latest:
            return places
        _, handles = self._picks[name]
        places = tuple([self._places.get(handle._id) or self._find_place(handle) for handle in handles(inputs)])
        self._latest_places[name] = same, places
        return places

    def _find_place(self, handle: Any) -> str:
        place = self._places[handle._id] = resource_device(handle)
        return place


def ask_for_all(calls: Sequence[WatchedCall]) -> None:
    """Have TensorFlow instantiate, without Grappler, a copy of each function of which that is not known yet."""
    for call in calls:
        if call.is_placed_here and call.copied is None and call.refused is None and not is_in_use():
            _ask(call, call.find_inputs())


def _ask(call: WatchedCall, inputs: Sequence[Any]) -> None:
    """Have TensorFlow instantiate a copy; an error counts as a refusal where the program's own call failed as well."""
    from simplace.oracle.live.own_instance import instantiate_copy

    call.copied, refused = instantiate_copy(
        call.definition, scope=call.scope, inputs=inputs, attrs=call.attrs, outputs=call.outputs
    )
    call.refused = refused if call.has_failed else None


def _describe_call(name: str, scope: str, inputs: Any, attrs: Any, outputs: int) -> WatchedCall:
    kept = [(weakref.ref(tensor), tensor.dtype) for tensor in inputs]
    return WatchedCall(
        name,
        scope,
        eager_device.soft_placement(),
        tuple(input_device(tensor, scope or find_host()) for tensor in inputs),
        tuple(_reach_functions(name)),
        dict(_find_traced(name)),
        tuple(attrs or ()),
        outputs,
        kept,
        tuple(None if tensor.dtype in _OBJECTS else tensor.shape for tensor in inputs),
        describe_resources(inputs),
        list_datasets(inputs),
    )


def _reach_functions(name: str) -> Iterator[Any]:
    """Yield the definitions of the functions that `name` calls at any depth, itself first."""
    ctx = context.context()
    names = {name: None}
    queue = [name]
    for reached in queue:  # grows while it is walked
        definition = ctx.get_function_def(reached)
        yield definition
        called = dict.fromkeys(list_called(definition.node_def, ctx.has_function))
        queue.extend(new for new in called if new not in names)
        names.update(called)


def _find_traced(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the graphs that a function and those that it calls were traced into, by name; a `Defun` has none."""
    found = [each for each in [_find_called_object(name)] if each is not None]
    seen = set(map(id, found))
    for atomic in found:  # grows while it is walked
        if atomic._cached_graph is not None:
            yield atomic.name.decode(), atomic._cached_graph
        called = (each for each in atomic.children if isinstance(each, atomic_function.AtomicFunction))
        new = [each for each in called if id(each) not in seen]
        seen.update(map(id, new))
        found.extend(new)


def _find_called_object(name: str) -> Any:
    """Return the object behind a function that is being called, whose method is among the frames; None without one."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and depth < _DEPTH:
        candidate = read_local(frame, "self")
        if isinstance(candidate, atomic_function.AtomicFunction) and candidate.name.decode() == name:
            return candidate
        frame, depth = frame.f_back, depth + 1
    return None


def _make_picks(inputs: Any) -> _Picks:
    """Return what picks the inputs that are numbers, and those that are handles or objects, as tuples."""
    numbers = [i for i, tensor in enumerate(inputs) if tensor.dtype not in _OBJECTS]
    handles = [i for i, tensor in enumerate(inputs) if tensor.dtype == tf.resource]
    return _pick(numbers), _pick(handles)


def _pick(indices: list[int]) -> Callable[[Any], Any]:
    if len(indices) < 2:
        return lambda inputs: tuple(inputs[i] for i in indices)
    return itemgetter(*indices)


def _make_stand_in(dtype: Any, device: str) -> Any:
    """Return a tensor of a type on a device; a handle of a variable without a value stands for any resource."""
    with tf.device(device):
        if dtype == tf.resource:
            return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=context.anonymous_name())
        if dtype == tf.variant:
            return make_empty_list(device)
        return tf.zeros([], dtype)
