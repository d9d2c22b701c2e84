"""Calls of traced functions from eager code: TensorFlow places them, each new placement is recorded and computed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import tensorflow as tf

from simplace.devices.device_set import COMPOSITE
from simplace.graph.function_names import shown_name
from simplace.graph.op_kinds import MUST_COMPILE, PARTITIONED_CALLS
from simplace.oracle.child import eager_device, kernel_types
from simplace.oracle.child.boundary import forget_frames, raise_as_theirs
from simplace.oracle.child.called_functions import read_function_name
from simplace.oracle.child.cpu_functions import CpuFunctions, explain_lack, lacks_kernel
from simplace.oracle.child.dataset_twins import find_placed, find_twin
from simplace.oracle.child.dataset_walks import WALKS, place_walks
from simplace.oracle.child.devices import computes_nothing, describe_remote
from simplace.oracle.child.empty_resources import has_resources, replace_resources
from simplace.oracle.child.error_handlers import find_handlers
from simplace.oracle.child.failures import FAILURES, code_name, find_code, find_copy_target, is_rejection
from simplace.oracle.child.function_owners import FunctionOwners
from simplace.oracle.child.functions import CapturedOutput, make_compiled_call
from simplace.oracle.child.host_ints import put_on_device
from simplace.oracle.child.inner_datasets import InnerDatasets
from simplace.oracle.child.one_op_functions import OneOpFunctions
from simplace.oracle.child.own_executor import run_at_once
from simplace.oracle.child.packed_handles import is_packed, list_members
from simplace.oracle.child.recorder import list_placed
from simplace.oracle.child.run_parts import RunParts
from simplace.oracle.child.tensors import (
    describe_resources,
    describe_variable,
    find_host,
    input_device,
    is_gpu_variable,
    is_initialized,
    is_object,
    list_datasets,
    make_full_optional,
    make_placeholder,
    task_of,
    to_device,
    zeros_on,
)
from simplace.oracle.child.tf_private import cancellation
from simplace.oracle.child.xla_errors import XlaErrors
from simplace.oracle.child.xla_lowering import XlaLowering
from simplace.oracle.placement_log import Executed, LogLine, PlacementLine

Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Record of what determines the placement of a call."""

    function: str
    scope: str
    soft_placement: bool
    arg_devices: tuple[str, ...]

    @property
    def instance(self) -> tuple[str, ...]:
        """Return the key of what TensorFlow places, and logs, only once."""
        return (self.function, *self.arg_devices)


@dataclass(frozen=True, slots=True)
class Calls:
    """Pair the call by which a function is placed with the one that computes it: they differ where Grappler is off."""

    placing: Call
    computing: Call


@dataclass(slots=True)
class _Attempt:
    """Record of a call: what was placed before it began, whether it began, and its result or error.

    `is_placed_only` tells that it ended as planned when it had been placed: it has not computed anything.
    """

    placed: list[PlacementLine]
    has_begun: bool
    result: Any
    error: Any
    is_placed_only: bool

    @property
    def is_refused(self) -> bool:
        """Return whether TensorFlow refused to place it.

        A coordinator cancels what waits for a call that failed, and an argument may be rejected: neither is a refusal.
        """
        if self.error is None or self.has_begun or find_code(self.error) == tf.errors.CANCELLED:
            return False
        return not is_rejection(self.error)

    def raise_error(self) -> NoReturn:
        """Raise the error and let go of it: the frames that it comes through hold the attempt (see raise_as_theirs)."""
        try:
            raise self.error
        finally:
            self.error = None


class FunctionCalls:
    """Observe the calls of traced functions."""

    def __init__(self, parts: RunParts) -> None:
        request = parts.request
        self._functions = parts.functions
        self._recorder = parts.recorder
        self._lines = parts.lines
        self._log = parts.log
        self._limit = parts.limit
        self._partitionings = parts.partitionings
        self._clusters = parts.clusters
        self._reached = parts.reached
        self._turn = threading.RLock()
        self._machine = request.machine
        self._narrow = request.options.function
        self.devices = parts.devices
        self._emulate = bool(request.plugin)
        self._placed: dict[tuple[str, ...], list[PlacementLine]] = {}  # by instance
        self._seen: set[_Kind] = set()
        self._real: set[_Kind] = set()  # what needs no GPU
        self._on_gpus: dict[_Kind, dict[str, str]] = {}  # the device of each node, by name; "" for all of them
        self._latest: dict[tuple[Any, ...], Any] = {}  # results by kind and types of the inputs
        self._cpu = CpuFunctions(parts.functions)
        self._one_op = OneOpFunctions()
        self.inner = InnerDatasets(parts.functions)
        self._owners = FunctionOwners(parts.lines)
        self._lowering = XlaLowering(parts.functions, parts.recorder)
        self._xla_errors = XlaErrors(parts.functions, self._cpu, self._lowering, parts.lines, parts.jit)

    def watch(self) -> None:
        """Remove what is made for the program's functions when they go."""
        self._cpu.watch()

    def run(self, name: str, inputs: Sequence[Any], scope: str, call: Call, attrs: Sequence[Any]) -> Any:
        """Call the function `name`, record its placement if it is new, and return its values or placeholder values.

        `attrs` are the call's attributes, each name followed by its value.
        """
        with self._turn if self._clusters.are_joined else nullcontext():  # its tasks log on threads of their own
            computing = call
            if self._partitionings.wanted:
                computing = partial(call, attrs=self._partitionings.restore_grappler(attrs))
            return self._run(name, inputs, scope, Calls(call, computing))

    def _run(self, name: str, inputs: Sequence[Any], scope: str, call: Calls) -> Any:
        arg_devices = tuple(input_device(tensor, scope or find_host()) for tensor in inputs)
        kind = _Kind(name, scope, eager_device.soft_placement(), arg_devices)
        signature = (kind, *map(_type_of, inputs))
        title = self._owners.name_call(shown_name(name)) or shown_name(name)
        called = self._functions.kind_of(name)
        iterator = _identify_iterator(inputs) if called.is_step else None
        is_allowed = self._limit.allows(title, signature, iterator, uses_container=called.uses_container)
        if not is_allowed and signature in self._latest:
            return self._hand_through(name, inputs, self._latest[signature])
        results = self._run_known(kind, inputs, call) if kind in self._seen else self._run_new(kind, inputs, call)
        self._latest[signature] = results
        return results

    def _run_new(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> Any:
        try:
            return self._run_first(kind, inputs, call)
        except FAILURES as error:
            self._recorder.event("raised", function=kind.function, code=code_name(find_code(error)))
            raise
        finally:
            self.reach_functions(self._functions.reached(kind.function))
            self._functions.write_first_call(kind.function, inputs, self._cpu.take_elements(kind.function))

    def _run_first(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> Any:
        """Place a function, then compute it: by this very call where it needs no GPU."""
        if self._is_compiled(kind.function):
            return self._run_compiled(kind, inputs, call)
        attempt = self._place(kind, inputs, call)
        if attempt.is_placed_only and not (self._emulate and self._computes_on_gpu(kind)):
            self._real.add(kind)
            attempt = self._compute_here(kind, inputs, call)
        return self._values(kind, inputs, attempt)

    def _run_known(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> Any:
        if kind in self._on_gpus:
            return self._compute(kind, inputs)
        return self._values(kind, inputs, self._place(kind, inputs, call))

    def _place(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> _Attempt:
        """Make TensorFlow place a function; run it only if it is known to need no GPU."""
        if kind in self._real or not (self._emulate or self._partitionings.wanted):
            return self._compute_here(kind, inputs, call)
        if not self._is_remote(kind):
            with self._turn:  # nothing runs that could wait for another thread
                return self._attempt(kind, inputs, cancel_call(call.placing), is_for_placement=True)
        if not self._emulate or not has_resources(inputs):
            return self._attempt(kind, inputs, call.placing)
        with replace_resources(inputs) as replaced:
            return self._attempt(kind, inputs, partial(call.placing, inputs=replaced), is_for_placement=True)

    def _compute_here(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> _Attempt:
        """Run a function as the program calls it; with other options of Grappler, TensorFlow places it once more."""
        return self._attempt(kind, inputs, call.computing, is_new=not self._partitionings.wanted)

    def _is_remote(self, kind: _Kind) -> bool:
        return task_of(kind.scope or find_host()) != task_of(find_host())

    def reach_functions(self, names: Sequence[str]) -> None:
        """Note that functions are among what this run shows."""
        self._reached.reach_functions(names)

    def copy_for_datasets(self, attrs: Sequence[Any]) -> tuple[Any, ...]:
        """Return an op's attributes with copies of functions in the place of those that would run on a GPU."""
        names = {i: read_function_name(value) for i, value in enumerate(attrs) if i % 2 and hasattr(value, "name")}
        found = {i: name for i, name in names.items() if self._functions.exists(name)}
        return tuple(self._cpu.copy_for_datasets(found[i]) if i in found else each for i, each in enumerate(attrs))

    def compute_op(self, op: str, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Compute an eager op that has no kernel for the CPU, as in a function; return zeros where none computes it."""
        traced = self._one_op.find(op, attrs, inputs)
        try:
            return self._cpu.call(tf.compat.as_str(traced.name), inputs, {})
        except FAILURES as error:
            if not lacks_kernel(error):
                raise
            self._remark_zeros(op, error)
            return [make_placeholder(find_host(), each.dtype, each.shape) for each in tf.nest.flatten(traced.outputs)]

    def _remark_zeros(self, name: str, error: Any) -> None:
        self._recorder.remark(f"{name} returned zeros, since no CPU computes it: {explain_lack(error)}")

    def remark_made_up_elements(self) -> None:
        """Write a remark that a dataset yielded zeros."""
        self._recorder.remark(
            "Emulated GPUs compute nothing: elements of datasets that they were to compute are zeros."
        )

    def _attempt(
        self, kind: _Kind, inputs: Sequence[Any], call: Call, *, is_for_placement: bool = False, is_new: bool = True
    ) -> _Attempt:
        """Make the call, whose result may not count, and record what TensorFlow places for it."""
        start = self._log.end()
        result, error = _attempt_call(call)
        is_remote = self._is_remote(kind)
        lines = self._log.since(start, every_thread=is_remote)
        placed, has_begun = _until_executed(kind.function, on_its_thread(kind.function, lines) if is_remote else lines)
        is_placed_only = is_for_placement and has_begun and (is_remote or error is not None)
        attempt = _Attempt(placed, has_begun, result, error, is_placed_only)
        del error  # so that only the attempt holds it, which lets go of it
        if placed and not is_new:
            self._recorder.event("placed again", function=kind.function, log=list_placed(placed))
        if is_new and (placed or attempt.is_refused):
            self._placed[kind.instance] = placed
            if self._limit.shows(shown_name(kind.function), self._owners.find().number, len(placed)):
                self._record(kind, inputs, placed, attempt.error if attempt.is_refused else None, start)
        return attempt

    def _computes_on_gpu(self, kind: _Kind) -> bool:
        """Return whether a node on a GPU does more there than forward, copy or keep tensors, or what is called may.

        TensorFlow places what a walk calls, and a function that is not inlined, only when they run.
        """
        nodes = [line.node for line in self._placed.get(kind.instance, ())]
        ops, on_gpus = {node.op for node in nodes}, [node.op for node in nodes if "/device:GPU:" in node.device]
        if not ops.isdisjoint(WALKS) or not all(map(kernel_types.is_harmless, on_gpus)):
            return True
        return not ops.isdisjoint(PARTITIONED_CALLS) and (bool(on_gpus) or self._requests_gpu(kind.function))

    def _requests_gpu(self, name: str) -> bool:
        definitions = map(self._functions.definition, self._functions.reached(name))
        return any("GPU" in node.device.upper() for definition in definitions for node in definition.node_def)

    def _values(self, kind: _Kind, inputs: Sequence[Any], attempt: _Attempt) -> Any:
        """Return what a call returned, or what the CPU computes where it failed because of emulated GPUs."""
        self._seen.add(kind)
        if attempt.error is None and not attempt.is_placed_only:
            return attempt.result
        if not attempt.is_placed_only and (attempt.is_refused or not computes_nothing(attempt.error)):
            attempt.raise_error()
        if attempt.error is not None:
            forget_frames(attempt.error)
        devices = {line.node.name: line.node.device for line in self._placed.get(kind.instance, ())}
        self._on_gpus[kind] = devices
        self._place_walks(kind.function, [*map(find_placed, inputs)])
        return self._compute(kind, inputs)

    def _place_walks(self, name: str, inputs: Sequence[Any]) -> None:
        """Make TensorFlow place what the walks through datasets in a function call, as far as they have no effects."""
        definition = self._functions.definition(name)
        if any(node.op in WALKS for node in definition.node_def):
            place_walks(definition, inputs)
            self.inner.place_in(definition, inputs)

    def _compute(self, kind: _Kind, inputs: Sequence[Any]) -> list[Any]:
        """Compute a function on the CPU, and copy its results to where TensorFlow placed them."""
        devices, given = self._on_gpus[kind], [*map(find_twin, inputs)]
        try:
            compiled = self._xla_errors.call(kind.function, given)
            results = self._cpu.call(kind.function, given, devices) if compiled is None else compiled
        except FAILURES as error:
            if not lacks_kernel(error):
                raise
            self._remark_zeros(shown_name(kind.function), error)
            self._fill_variables(inputs)
            return self._make_up(kind.function, inputs, devices)
        names = [f"{arg.name}_RetVal" for arg in self._functions.definition(kind.function).signature.output_arg]
        placed = zip(results, names, strict=True)
        if "" in devices:  # what XLA has compiled
            moved = [to_device(result, devices[""]) for result in results]
        else:
            moved = [put_on_device(result, devices.get(name, "")) for result, name in placed]
        return self._hand_through(kind.function, inputs, moved)

    def _hand_through(self, name: str, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Return the results, with the function's own resource arguments instead of copies of them."""
        outputs = self._functions.outputs(name)
        if not outputs:
            return list(results)
        return [
            inputs[output.handed_through] if output.handed_through is not None and is_object(result) else result
            for output, result in zip(outputs, results, strict=True)
        ]

    def _record(self, kind: _Kind, inputs: Sequence[Any], placed: list[PlacementLine], error: Any, start: int) -> None:
        shown = shown_name(kind.function)
        if self.is_left_out(shown):
            return
        self.devices.tell()
        graph, names = self._functions.library(kind.function)
        self._functions.write_notes(names)
        number = self._recorder.program(
            graph,
            program_kind="function",
            function=kind.function,
            arg_devices=list(kind.arg_devices),
            functions=names,
            log=list_placed(placed),
            **self._describe_call(kind, inputs, error),
        )
        self._partitionings.record(number, start, thread=placed[0].thread if placed else None)

    def _describe_call(self, kind: _Kind, inputs: Sequence[Any], error: Any) -> dict[str, Any]:
        """Return what is recorded of a function's first call, whatever compiles it; `error` is a refusal, or None."""
        shown, owner = shown_name(kind.function), self._owners.find()
        return {
            "name": shown,
            "role": self._owners.name_call(shown),
            "owner": owner.number,
            "is_internal": owner.is_internal,
            "at": self._lines.of_frames(),
            "resources": describe_resources(inputs),
            "datasets": list_datasets(inputs),
            "scope": kind.scope,
            "soft_placement": kind.soft_placement,
            "refused": None if error is None else self._recorder.refusal(code_name(find_code(error)), error.message),
            "devices": self._describe_devices(kind, inputs),
            "handlers": find_handlers(self._lines),
            **self.describe_grappler(),
        }

    def describe_grappler(self) -> dict[str, Any]:
        """Return what the program set of Grappler for functions."""
        return self._partitionings.describe_grappler()

    def _describe_devices(self, kind: _Kind, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """Describe the devices that a call is placed on, where these are not those of the context.

        TensorFlow makes a composite device of those that a packed variable is on (common_runtime/eager/context.cc), and
        lists it after the others (InstantiateMultiDevice of process_function_library_runtime.cc).
        """
        seen = describe_remote(self._clusters.seen_from(kind.scope or find_host()), self._machine)
        composite = {where: tensor for where, tensor in zip(kind.arg_devices, inputs, strict=True) if is_packed(tensor)}
        described = [{"name": name, "type": COMPOSITE, "members": list_members(composite[name])} for name in composite]
        return [*(seen or self.devices.told), *described] if described else seen

    def is_left_out(self, shown: str) -> bool:
        """Return whether the run is narrowed to other functions."""
        return bool(self._narrow) and shown.split(" ")[0] != self._narrow

    def _fill_variables(self, inputs: Sequence[Any]) -> None:
        """Assign zeros to the variables that a function should have initialized and could not."""
        for tensor in inputs:
            if is_gpu_variable(tensor) and not is_initialized(tensor):
                spec = describe_variable(tensor)
                tf.raw_ops.AssignVariableOp(resource=tensor, value=zeros_on(tensor.device, spec.dtype, spec.shape))

    def _is_compiled(self, name: str) -> bool:
        return bool(self._functions.definition(name).attr[MUST_COMPILE].b)

    def _run_compiled(self, kind: _Kind, inputs: Sequence[Any], call: Calls) -> Any:
        """Call what XLA compiles whole; on an emulated GPU TensorFlow names the device, and the CPU computes."""
        is_remote = self._is_remote(kind)
        is_emulated = self._emulate and "/device:GPU:" in eager_device.choose_device(
            eager_device.EVERY_TYPE, kind.scope
        )
        start = self._log.end()
        result, error = _attempt_call(cancel_call(call.placing) if is_emulated else call.computing)
        lines = self._log.since(start, every_thread=is_remote)
        home = next((line.device for line in lines if isinstance(line, Executed) and line.op == kind.function), "")
        if error is not None and not home and is_rejection(error):
            self._reject_compiled(kind, inputs, error)
        self._seen.add(kind)
        program = self._record_compiled(kind, inputs, home, None if home else error)
        if is_emulated and home and error is not None:
            forget_frames(error)
            if program is not None:
                self._lowering.ask(kind.function, inputs, program)
            self._on_gpus[kind] = {"": home}  # all of it
            return self._compute(kind, inputs)
        self._real.add(kind)
        if error is not None:
            raise error
        if program is not None:
            self._lowering.note_lowered(program)
        return result

    def _reject_compiled(self, kind: _Kind, inputs: Sequence[Any], error: Any) -> NoReturn:
        """Raise what TensorFlow says of an argument; one that it cannot copy tells where it would execute the call."""
        if home := find_copy_target(error):
            self._seen.add(kind)
            self._real.add(kind)
            self._record_compiled(kind, inputs, home, None, copy_error=str(error.message))
        raise error

    def _record_compiled(
        self, kind: _Kind, inputs: Sequence[Any], home: str, error: Any, *, is_asked: bool = True, copy_error: str = ""
    ) -> int | None:
        """Record the call of a function that XLA compiles: one node, for the device that TensorFlow executes it on.

        Return the number of the program, None where it is left out.
        """
        shown, names = shown_name(kind.function), self._functions.reached(kind.function)
        nodes = sum(len(self._functions.definition(each).node_def) for each in names)
        if self.is_left_out(shown) or not self._limit.shows(shown, self._owners.find().number, nodes):
            return None
        self.devices.tell()
        node = make_compiled_call(kind.function, shown)
        self._functions.write_notes(names)
        return self._recorder.program(
            self._functions.graph_of_call(node, names),
            program_kind="compiled",
            function=None,
            arg_devices=[],
            functions=names,
            log=[[node.name, node.op, home]] if home else [],
            asked=is_asked,
            copy_error=copy_error,
            **self._describe_call(kind, inputs, error),
        )

    def _make_up(self, name: str, inputs: Sequence[Any], devices: dict[str, str]) -> list[Any]:
        results = [f"{arg.name}_RetVal" for arg in self._functions.definition(name).signature.output_arg]
        outputs = self._functions.outputs_of_call(name, inputs)
        made = zip(results, outputs, strict=True)
        return [self._value(name, output, inputs, devices.get(result, devices.get("", ""))) for result, output in made]

    def _value(self, name: str, output: CapturedOutput, inputs: Sequence[Any], device: str) -> Any:
        if output.handed_through is not None:
            return inputs[output.handed_through]
        if output.dtype == tf.resource:
            message = f"{shown_name(name)} returns a resource, for which emulated GPUs have no placeholder value"
            self._recorder.remark(message + ".")
            raise_as_theirs(tf.errors.UnimplementedError(None, None, message))
        if output.optional is not None:
            return make_full_optional(output.optional)
        return make_placeholder(device, output.dtype, output.shape)


def _type_of(tensor: Any) -> Any:
    shape = getattr(tensor, "shape", None)
    return None if shape is None or shape.rank is None else (tensor.dtype, tuple(shape.as_list()))


def _attempt_call(call: Call) -> tuple[Any, Any]:
    try:
        return call(), None
    except FAILURES as error:
        return None, error


def cancel_call(call: Call) -> Call:
    """Return a call that is cancelled before it begins: the function is placed, and nothing of it runs."""
    manager = cancellation.CancellationManager()
    manager.start_cancel()

    def run() -> Any:
        with run_at_once():
            return call(cancellation=manager._impl)

    return run


def _identify_iterator(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return what identifies the iterator that a call with these inputs takes an element from."""
    return tuple(tensor._id for tensor in inputs if is_object(tensor))


def on_its_thread(name: str, lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Return the lines of the one thread that executes the function, or else of the first one that places something."""
    found = list(lines)
    threads = [line.thread for line in found if isinstance(line, Executed) and line.op == name]
    threads += [line.thread for line in found if isinstance(line, PlacementLine)]
    return (line for line in found if line.thread in threads[:1])


def _until_executed(name: str, lines: Iterator[LogLine]) -> tuple[list[PlacementLine], bool]:
    """Return the placement lines before the function's own "Executing" line, and whether that line came."""
    placed: list[PlacementLine] = []
    for line in lines:
        if isinstance(line, Executed) and line.op == name:
            return placed, True
        if isinstance(line, PlacementLine) and not line.verbose:
            placed.append(line)
    return placed, False
