"""Calls of traced functions from eager code: each new placement becomes a program, and made-up values go on."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.eager import cancellation, context, core
from tensorflow.python.framework import constant_op, dtypes, errors_impl, ops, tensor_shape
from tensorflow.python.ops import gen_list_ops, gen_optional_ops, gen_resource_variable_ops

from simplace.oracle.inside import call_device
from simplace.oracle.inside.devices import Gpus, of_context, remote
from simplace.oracle.inside.functions import Functions, Output, shown_name, zeros
from simplace.oracle.inside.partition_graphs import PartitionGraphs
from simplace.oracle.inside.recorder import LogFile, Recorder
from simplace.oracle.inside.source_lines import SourceLines
from simplace.oracle.messages import Request
from simplace.oracle.placement_log import Executed, LogLine, Placed

Call = Callable[..., Any]
_CODES = {value: name for name, value in vars(errors_impl).items() if name.isupper() and type(value) is int}
_RESOURCE_DEVICE = re.compile('device="([^"]+)"')
_RETRACES = 50
_STOP = signal.SIGUSR1  # how another thread stops the program, which may wait for that thread
_ENDED_INPUTS = 100


class Stopped(BaseException):
    """End the user's program: nothing new is to be expected of it."""


def _stop_program(number: int, frame: Any) -> None:
    raise Stopped


class CallLimit:
    """End a program that calls the same thing again and again with nothing new to be seen."""

    def __init__(self, most: int, recorder: Recorder, lines: SourceLines) -> None:
        self._most = most
        self._most_traces = max(_RETRACES, most)
        self._recorder = recorder
        self._lines = lines
        self._calls: Counter[str] = Counter()
        self._traces: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self.has_stopped = False
        signal.signal(_STOP, _stop_program)

    @property
    def has_ended_input(self) -> bool:
        """Say whether a function was told that its input has come to an end."""
        return bool(self._ended)

    def is_new(self, name: str) -> None:
        """Forget the calls counted so far: `name` was placed anew."""
        self._calls.clear()
        self._traces[name] += 1
        if self._traces[name] > self._most_traces:
            times = f"{self._most_traces} times, each time with another signature or other devices"
            self._stop(f"{name} was placed {times}")

    def count(self, name: str, reads_iterator: bool = False) -> None:
        """Count a call of `name`; after the last one that is allowed, end its input or raise `Stopped`.

        A function that reads an iterator sees the end of it: an epoch ends early, and what follows is still seen.
        """
        self._calls[name] += 1
        if self._calls[name] <= self._most:
            return
        why = f"{name} was called {self._most} times and nothing new was placed"
        if reads_iterator and self._ended[name] < _ENDED_INPUTS:
            self._end_input(name, why)
        self._stop(why)

    def _end_input(self, name: str, why: str) -> None:
        self._ended[name] += 1
        if self._ended[name] == 1:
            self._recorder.remark(f"The input of {name} was ended early at {self._lines.here()}: {why}.")
            warnings.filterwarnings("ignore", message=r"\s*Your input ran out of data")  # Keras blames the dataset
        raise errors_impl.OutOfRangeError(None, None, "End of sequence")

    def _stop(self, why: str) -> None:
        self.has_stopped = True
        at = self._lines.here()
        self._recorder.remark(f"The program was stopped at {at or 'an unknown line'}: {why}.")
        if threading.current_thread() is threading.main_thread():
            raise Stopped(why)
        signal.pthread_kill(threading.main_thread().ident or 0, _STOP)
        raise SystemExit  # ends this thread without a word


class Clusters(Protocol):
    """Know the cluster that the program has joined, if it has."""

    @property
    def are_joined(self) -> bool:
        """Say whether functions may be placed on other tasks than the program's own."""

    def seen_from(self, device: str) -> list[str]:
        """List the devices that a device's task sees, its own first; () where there is no cluster."""


class FunctionCalls:
    """Observe the calls of traced functions."""

    def __init__(
        self,
        functions: Functions,
        recorder: Recorder,
        log: LogFile,
        limit: CallLimit,
        gpus: Gpus,
        cuts: PartitionGraphs,
        clusters: Clusters,
        request: Request,
    ) -> None:
        self._functions = functions
        self._recorder = recorder
        self._log = log
        self._limit = limit
        self._gpus = gpus
        self._cuts = cuts
        self._clusters = clusters
        self._turn = threading.RLock()
        self._machine = request.machine
        self._narrow = request.options.function
        self._has_told_devices = False
        self._made_up: dict[tuple[Any, ...], dict[str, str]] = {}

    def run(self, name: str, inputs: Sequence[Any], scope: str, call: Call) -> Any:
        """Call the function `name`, record its placement if it is new, and hand back its values or made-up ones."""
        if not self._clusters.are_joined:
            return self._run(name, inputs, scope, call)
        with self._turn:  # the tasks of a cluster log on threads of their own
            return self._run(name, inputs, scope, call)

    def _run(self, name: str, inputs: Sequence[Any], scope: str, call: Call) -> Any:
        shown = shown_name(name)
        soft = call_device.soft_placement()
        is_remote = task_of(scope or host()) != task_of(host())
        arg_devices = [_device_of(tensor, scope or host()) for tensor in inputs]
        key = (name, scope, soft, *arg_devices)
        known = self._made_up.get(key)
        if known is not None:
            self._limit.count(shown, self._functions.reads_iterator(name))
            return self._make_up(name, inputs, known)
        if self._is_compiled(name):
            return self._run_compiled(name, inputs, scope, call)
        held = self._hold_variables(inputs)
        start = self._log.end()
        is_cancelled = not is_remote and self._gpus.emulated and self._spans_tasks(name, arg_devices)
        result, error = self._attempt(_cancelled(call) if is_cancelled else call)
        del held
        lines = on_its_thread(name, self._log.since(start, every_thread=True)) if is_remote else self._log.since(start)
        placed, executed = _until_executed(name, lines)
        # A coordinator cancels what waits behind a call that failed: that was not placed, nor refused.
        refused = error is not None and not executed and _code(error) != errors_impl.CANCELLED
        if placed or refused:
            self._record(name, shown, arg_devices, scope, soft, placed, error if refused else None, start)
            self._limit.is_new(shown)
        else:
            self._limit.count(shown, self._functions.reads_iterator(name))
        if error is None:
            return result
        if refused or not (self._gpus.have_refused or (is_cancelled and executed)):
            raise error
        self._recorder.remark("Emulated GPUs compute nothing: functions that ran on them returned zeros.")
        self._fill_variables(inputs)
        devices = {line.node.name: line.node.device for line in placed}
        self._made_up[key] = devices
        return self._make_up(name, inputs, devices)

    def _spans_tasks(self, name: str, arg_devices: Sequence[str]) -> bool:
        """Say whether a function of the program's own task may have parts on other tasks.

        Where one of them fails, the others may wait for it for ever.
        """
        if not self._clusters.are_joined:
            return False
        text, _ = self._functions.library(name)
        return b"/job:" in text or b"/task:" in text or len({task_of(host()), *map(task_of, arg_devices)}) > 1

    def _attempt(self, call: Call) -> tuple[Any, Any]:
        with self._gpus.refusing():
            try:
                return call(), None
            except (core._NotOkStatusException, errors_impl.OpError) as error:  # older versions raise the first
                return None, error

    def _record(
        self,
        name: str,
        shown: str,
        arg_devices: list[str],
        scope: str,
        soft: bool,
        placed: list[Placed],
        error: Any,
        start: int,
    ) -> None:
        if self._narrow and shown.split(" ")[0] != self._narrow:
            return
        if not self._has_told_devices:  # now, in case the program crashes later
            self._has_told_devices = True
            self._recorder.event("devices", devices=of_context(self._machine))
        graph, names = self._functions.library(name)
        self._functions.write_notes(names)
        for inner in names[1:]:
            if self._is_compiled(inner):
                self._recorder.remark(
                    f"{shown_name(inner)} is compiled by XLA: TensorFlow places the call of it as one node; with "
                    "jit_compile=False (in Keras: model.compile(..., jit_compile=False)) it places every op."
                )
        self._recorder.program(
            graph,
            name=shown,
            program_kind="function",
            function=name,
            arg_devices=arg_devices,
            scope=scope,
            soft_placement=soft,
            functions=names,
            log=[[line.node.name, line.node.op, line.node.device] for line in placed],
            refused=None if error is None else self._recorder.refusal(code_name(_code(error)), error.message),
            devices=remote(self._clusters.seen_from(scope or host()), self._machine),
        )
        self._cuts.record(self._recorder.programs - 1, start, thread=placed[0].thread if placed else None)

    def _hold_variables(self, inputs: Sequence[Any]) -> list[Any]:
        """Keep a second reference to each GPU variable's buffer.

        An op that updates a buffer in place would not ask for memory, so it could not be refused, and would reach
        the missing driver.
        """
        if not self._gpus.emulated:
            return []
        return [read_variable(tensor) for tensor in inputs if is_gpu_variable(tensor) and is_initialized(tensor)]

    def _fill_variables(self, inputs: Sequence[Any]) -> None:
        """Give zeros to the variables that a function was to initialize and could not."""
        for tensor in inputs:
            if is_gpu_variable(tensor) and not is_initialized(tensor):
                described = tensor._handle_data.shape_and_type[0]
                dtype, shape = dtypes.as_dtype(described.dtype), tensor_shape.TensorShape(described.shape)
                gen_resource_variable_ops.assign_variable_op(tensor, zeros_on(tensor.device, dtype, shape))

    def _is_compiled(self, name: str) -> bool:
        return bool(self._functions.definition(name).attr["_XlaMustCompile"].b)

    def _run_compiled(self, name: str, inputs: Sequence[Any], scope: str, call: Call) -> Any:
        shown = shown_name(name)
        self._recorder.remark(
            f"{shown} has jit_compile=True: TensorFlow hands it whole to XLA and places no node of it."
        )
        self._limit.count(shown)
        home = call_device.choose(call_device.EVERY_TYPE, scope)
        if "/device:GPU:" not in home:
            return call()
        return self._make_up(name, inputs, {}, home)

    def _make_up(self, name: str, inputs: Sequence[Any], devices: dict[str, str], otherwise: str = "") -> list[Any]:
        results = [f"{arg.name}_RetVal" for arg in self._functions.definition(name).signature.output_arg]
        outputs = self._functions.outputs(name)
        made = zip(results, outputs, strict=True)
        return [self._value(name, output, inputs, devices.get(result, otherwise)) for result, output in made]

    def _value(self, name: str, output: Output, inputs: Sequence[Any], device: str) -> Any:
        if output.handed_through is not None:
            return inputs[output.handed_through]
        if output.dtype == dtypes.resource:
            message = f"{shown_name(name)} returns a resource, which emulated GPUs can't make up"
            self._recorder.remark(message + ".")
            raise errors_impl.UnimplementedError(None, None, message)
        if output.dtype == dtypes.variant:
            return empty_list() if output.optional is None else full_optional(output.optional)
        return zeros_on(device, output.dtype, output.shape)


def code_name(code: int) -> str:
    """Name a status code.

    >>> code_name(3)
    'INVALID_ARGUMENT'
    """
    return str(_CODES.get(code, code))


def host() -> str:
    """Give the full name of the CPU that holds what is on no other device."""
    return str(context.context()._context_devices[0]) if context.context()._context_devices else "/device:CPU:0"


def to_device(tensor: Any, device: str) -> Any:
    """Copy a tensor of numbers to `device`; leave it alone if it is there or can't be copied."""
    if not device or tensor.device == device or tensor.dtype in (dtypes.string, dtypes.variant, dtypes.resource):
        return tensor
    return tensor._copy_to_device(device)


def is_gpu_variable(tensor: Any) -> bool:
    """Say whether an input is the handle of a variable on a GPU."""
    return is_variable(tensor) and "/device:GPU:" in resource_device(tensor)


def resource_device(handle: Any) -> str:
    """Name the device that a resource is on, as its handle says.

    That counts where a function takes it (GetDeviceForInput of eager/execute.cc), and not the handle's own device: what
    a function call returns has the device of the call. A handle of another task cannot be read from here.
    """
    is_here = task_of(handle.device) == task_of(host()) and "/device:GPU:" not in handle.backing_device
    found = _RESOURCE_DEVICE.search(handle._summarize_value()) if is_here else None
    return found[1] if found else str(handle.device)


def is_variable(tensor: Any) -> bool:
    """Say whether an input is the handle of a variable: other resources have no shape and type."""
    if getattr(tensor, "dtype", None) != dtypes.resource:
        return False
    data = getattr(tensor, "_handle_data", None)
    return data is not None and data.is_set and len(data.shape_and_type) == 1


def is_initialized(handle: Any) -> bool:
    """Say whether a variable has a value."""
    return bool(gen_resource_variable_ops.var_is_initialized_op(handle))


def read_variable(handle: Any) -> Any:
    """Read a variable where it is: the result shares its buffer."""
    return gen_resource_variable_ops.read_variable_op(handle, handle._handle_data.shape_and_type[0].dtype)


def zeros_on(device: str, dtype: Any, shape: Any) -> Any:
    """Make zeros on a device, "" for the host."""
    return to_device(ops.EagerTensor(zeros(dtype, shape), host(), dtype.as_datatype_enum), device)


def full_optional(element: Any) -> Any:
    """Make the variant of an Optional that holds zeros."""
    flat = tf.nest.flatten(element, expand_composites=True)
    with ops.device(host()):
        return gen_optional_ops.optional_from_value([zeros_on("", spec.dtype, spec.shape) for spec in flat])


def empty_list() -> Any:
    """Make an empty TensorList, the only other variant that can stand for any."""
    with ops.device(host()):
        return gen_list_ops.empty_tensor_list(
            element_shape=constant_op.constant([], dtypes.int32), max_num_elements=-1, element_dtype=dtypes.float32
        )


def _cancelled(call: Call) -> Call:
    """Make the call one that is cancelled before it begins: the function is placed, and nothing of it runs."""
    manager = cancellation.CancellationManager()
    manager.start_cancel()

    def run() -> Any:
        return call(cancellation=manager._impl)

    return run


def task_of(device: str) -> str:
    """Take the job, replica and task of a full device name.

    >>> task_of("/job:worker/replica:0/task:1/device:GPU:0")
    '/job:worker/replica:0/task:1'
    """
    return device.partition("/device:")[0]


def on_its_thread(name: str, lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Keep the lines of the one thread that executes the function, or else of the first one that places something."""
    found = list(lines)
    threads = [line.thread for line in found if isinstance(line, Executed) and line.op == name]
    threads += [line.thread for line in found if isinstance(line, Placed)]
    return (line for line in found if line.thread == threads[0])


def _device_of(tensor: Any, target: str) -> str:
    """Name the device of an input as the task of the call's device `target` sees it.

    What the program's own task hands to another one is copied to its CPU (EagerRemoteExecute, eager/execute.cc).
    """
    is_resource = getattr(tensor, "dtype", None) == dtypes.resource
    where = (resource_device(tensor) if is_resource else getattr(tensor, "device", "")) or host()
    home = task_of(target)
    if task_of(where) != home and task_of(where) != task_of(host()):
        return where
    is_copied = task_of(where) != home and not is_resource
    if is_copied or getattr(tensor, "dtype", None) in (dtypes.int32, dtypes.string):
        return f"{home}/device:CPU:0"
    return where


def _until_executed(name: str, lines: Iterator[LogLine]) -> tuple[list[Placed], bool]:
    """Take the placement lines before the function's own "Executing" line, and say whether that line came."""
    placed: list[Placed] = []
    for line in lines:
        if isinstance(line, Executed) and line.op == name:
            return placed, True
        if isinstance(line, Placed) and not line.verbose:
            placed.append(line)
    return placed, False


def _code(error: Any) -> int:
    return int(error.error_code if isinstance(error, errors_impl.OpError) else error.code)
