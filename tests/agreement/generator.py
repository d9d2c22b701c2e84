"""Write random TensorFlow programs as Python source, each from one seed."""

from __future__ import annotations

import keyword
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.kernels.registry import ArgSpec, KernelTable, OpDef
from tests.agreement import templates

_KNOWN_KERNELS = 0.98  # an op without any kernel makes TensorFlow refuse the whole program
_DEEPEST = 14  # Python allows twenty blocks inside each other
_FRAMES = re.compile(r"(Ref)?(Enter|Exit|NextIteration|LoopCond)")  # by hand they make no valid loop
_NUMBERS = ("float32",) * 8 + ("int32",) * 4 + ("int64", "bool", "string", "float64", "float16", "complex64") * 2
_CRASHING = re.compile(r"QueueDequeue(Many|UpTo)(V2)?")  # a count that is no scalar ends TensorFlow's process
_ARGUMENTS = (*_NUMBERS, "resource", "resource", "variant")
_HELD = tuple(one for one in templates.DTYPES if not one.startswith(("q", "var", "res")))  # what a constant may hold
_COMMON = (
    "float32",
    "int32",
    "int64",
    "bool",
    "string",
    "float64",
    "float16",
    "complex64",
    "uint8",
    "bfloat16",
    "int8",
)
_WAITING = ("queue", "shuffled", "sum")
_HOLE = re.compile(r"\{(\w+)\}")
_LETTERS = {"f": "float32", "i": "int32", "l": "int64", "b": "bool", "s": "string", "d": "float64", "h": "float16"}
_LETTERS |= {"c": "complex64", "v": "variant", "r": "resource"}


def generate(seed: int, table: KernelTable, gpus: int, cpus: int = 1) -> str:
    """Write the program of a seed for a machine: the source of a Python function `program(name)`."""
    return _Program(seed, table, gpus, cpus).write()


def generate_eager(seed: int, table: KernelTable, gpus: int, cpus: int = 1) -> str:
    """Write the program of a seed whose ops run outside of functions, in the same form."""
    return _EagerProgram(seed, table, gpus, cpus).write()


class _Program:
    """Write one program."""

    def __init__(self, seed: int, table: KernelTable, gpus: int, cpus: int) -> None:
        self.random = random.Random(seed)
        self.table = table
        self.lines: list[str] = []
        self.indent = 1
        self.serial = 0
        self.in_session = self.random.random() < 0.45
        self.soft = self.random.random() < 0.8
        self.wildness = self.random.choice((0.0, 0.2, 0.5, 0.9))
        self.real: list[str | None] = [*(f"/GPU:{i}" for i in range(min(gpus, 3))), *(f"/CPU:{i}" for i in range(cpus))]
        self.devices = self.real * 4 + _odd_devices(gpus, self.soft, self.random)
        self.scope_rate = self.random.choice((0.05, 0.1, 0.35, 0.6))
        self.parts = self.random.choice((1, 1, 1, 2, 3)) if self.in_session else 1
        self.colocations = self.random.choice((0.0, 0.3, 1.0))
        self.variables: dict[str, list[str]] = {}
        self.ref_variables: dict[str, list[str]] = {}
        self.objects: list[tuple[str, str]] = []
        self.functions: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []

    def write(self) -> str:
        (self._session if self.in_session else self._function)()
        return "\n".join(["def program(name):", *self.lines]) + "\n"

    def _function(self) -> None:
        captured = self._outside()
        if not self.soft:
            self.put("tf.config.set_soft_device_placement(False)")
        types = tuple(self.random.choices(_ARGUMENTS, k=self.random.randint(0, 3)))
        composites = self.random.choices(templates.COMPOSITES, k=self.random.choice((0, 0, 0, 1, 2)))
        names = [self.new("x") for _ in (*types, *composites)]
        self.put(f"def main({', '.join(names)}):")
        with self.deeper():
            env = _Values([*captured, *zip(types, names, strict=False)])
            self.objects += zip((kind for kind, _, _ in composites), names[len(types) :], strict=True)
            self.body(env, self.random.randint(1, 2), self.random.randint(2, 9))
            self.put(f"return {self.results(env)}")
        specs = [f"tf.TensorSpec({self._shape(dtype)}, tf.{dtype})" for dtype in types]
        specs += [spec for _, spec, _ in composites]
        if not all(specs):  # a variable can't be in a signature
            specs = []
        options = self.maybe(0.05, ", jit_compile=False")
        self.put(f"f = traced({', '.join(['main', *specs])}, name=name{options})")
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            arguments = [f"value({dtype!r}, {self.argument_device()})" for dtype in types]
            for _, _, text in composites:
                with self.scope(0.6, real=True):
                    arguments.append(self.assign("x", text))
            with self.scope(0.4):
                self.put(f"{self.way_to_call()}({', '.join(['f', *arguments])})")

    def _session(self) -> None:
        self.put("def steps():")
        with self.deeper():
            env = _Values()
            for dtype in self.random.choices(_ARGUMENTS, k=self.random.randint(1, 3)):
                with self.scope():
                    env.add(dtype, self.assign("x", f"v1.placeholder(tf.{dtype}{self.maybe(0.4, ', [2, 2]')})"))
            for dtype in self.random.choices(("float32", "float32", "int32", "int64", "string", "bool"), k=2):
                with self.scope():
                    self._session_variable(dtype)
            for part in range(self.parts):
                if part:
                    self.put("yield")
                self.body(env, self.random.randint(1, 2), self.random.randint(2, 8))
            self.put("yield")
        v2 = self.random.random() < 0.5
        self.put(
            f"session(name, steps, soft={self.soft}, control_flow_v2={v2}{self.maybe(0.1, ', intermediates=True')})"
        )

    def _session_variable(self, dtype: str) -> None:
        name = self.new("w")
        if self.random.random() < 0.5:
            self.put(f"{name} = tf.raw_ops.VariableV2(shape=[2], dtype=tf.{dtype})")
            self.ref_variables.setdefault(dtype, []).append(name)
            return
        self.put(f"{name} = v1.get_variable(name + '_{name}', [2], tf.{dtype}, v1.zeros_initializer(), "
                 "use_resource=True)")  # fmt: skip
        self.variables.setdefault(dtype, []).append(name)

    def _outside(self) -> list[tuple[str, str]]:
        """Make variables, objects and constants for functions to capture; return the constants."""
        for dtype in self.random.choices(("float32", "float32", "int32", "int64", "string", "bool"), k=2):
            name = self.assign("w", f"variable({dtype!r}, {self.real_device()})")
            self.variables.setdefault(dtype, []).append(name)
        for _ in range(self.random.choice((0, 0, 1, 2))):
            kind, text = self.random.choice(self.object_templates())
            with self.scope(0.2, real=True):
                self.objects.append((kind, self.assign("o", text)))
        captured = []
        for dtype in self.random.choices((*_ARGUMENTS, *_HELD), k=self.random.choice((0, 0, 1, 2))):
            captured.append((dtype, self.assign("c", f"value({dtype!r}, {self.real_device()})")))
        return captured

    # A body is a list of statements; each adds values that later ones may use.

    def body(self, env: _Values, depth: int, length: int) -> None:
        for _ in range(length):
            with self.around(env):
                self.statement(env, depth)

    def statement(self, env: _Values, depth: int) -> None:
        chance = self.random.random()
        if depth and chance < 0.3:
            self.random.choice((self.branch, self.branch, self.case, self.loop, self.loop, self.call, self.call))(
                env, depth - 1
            )
        elif chance < 0.35 and self.functions:
            self.call_again(env)
        elif chance < 0.42 and self.parts == 1:  # a gradient changes calls that the session already has
            self.put_value(env, "float32", f"tf.gradients({env.pick('float32', self)}, [{env.pick('float32', self)}])")
        elif self.random.random() < self.wildness:
            self.wild(env)
        else:
            self.template(env)

    def template(self, env: _Values) -> None:
        choices: Sequence[tuple[str, str]] = templates.VALUES
        if self.variables and self.random.random() < 0.25:
            choices = [one for one in templates.VARIABLES if _needs(one[1]) <= self.variables.keys()] or choices
        elif self.ref_variables and self.random.random() < 0.3:
            choices = [one for one in templates.REF_VARIABLES if _needs(one[1]) <= self.ref_variables.keys()] or choices
        elif self.objects and self.random.random() < 0.4:
            kind, name = self.random.choice(self.objects)
            dtype, text = self.random.choice(templates.USES[kind])
            self.put_value(env, dtype, self.fill(text, env).replace("$", name))
            return
        dtype, text = self.random.choice(choices)
        if self.parts == 1 or "gradients" not in text:
            self.put_value(env, dtype, self.fill(text, env))

    def fill(self, text: str, env: _Values) -> str:
        """Put values into the holes of a template."""

        def chosen(hole: re.Match[str]) -> str:
            word = hole[1]
            if word in _LETTERS:
                return env.pick(_LETTERS[word], self)
            kind, dtype = word.split("_", 1)
            return self.random.choice((self.variables if kind == "var" else self.ref_variables)[dtype])

        return _HOLE.sub(chosen, text)

    def put_value(self, env: _Values, dtype: str, text: str, place: int = 0) -> None:
        if not dtype:
            self.put(f"made(tf.float32, lambda: {text})")
            return
        where = f", {place}" if place else ""
        env.add(dtype, self.assign("t", f"made(tf.{dtype}, lambda: {text}{where})"))

    # Structures.

    def branch(self, env: _Values, depth: int) -> None:
        types = self.types()
        then, other = self.inner("then", env, (), types, depth), self.inner("other", env, (), types, depth)
        self.put_values(env, types, f"tf.cond({env.pick_scalar(self)}, {then}, {other})")

    def case(self, env: _Values, depth: int) -> None:
        types = self.types()
        names = [self.inner("branch", env, (), types, depth) for _ in range(self.random.randint(1, 3))]
        index = f"made(tf.int32, lambda: tf.reshape({env.pick('int32', self)}, []))"
        self.put_values(env, types, f"tf.switch_case({index}, [{', '.join(names)}])")

    def loop(self, env: _Values, depth: int) -> None:
        types = self.types()
        start = [env.pick(dtype, self) for dtype in types]
        names = [self.new("a") for _ in types]
        counter = self.new("i")
        body = self.inner("body", env, (("int32", counter), *zip(types, names, strict=True)), types, depth, counter)
        arguments = ", ".join([counter, *names])
        shapes = ", ".join(["tf.TensorShape([])"] + ["tf.TensorShape(None)"] * len(types))
        limit = self.maybe(0.3, ", maximum_iterations=3")
        text = f"tf.while_loop(lambda {arguments}: {counter} < 3, {body}, [tf.constant(0), {', '.join(start)}], "
        self.put_values(env, types, f"{text}shape_invariants=[{shapes}]{limit})[1:]")

    def call(self, env: _Values, depth: int) -> None:
        given = tuple(self.random.choices(_ARGUMENTS, k=self.random.randint(0, 3)))
        types = self.types()
        names = [self.new("a") for _ in given]
        inner = self.inner("inner", env, tuple(zip(given, names, strict=True)), types, depth)
        options = self.maybe(0.05, ", experimental_attributes={'_noinline': True}")
        options += self.maybe(0.04, ", jit_compile=True")
        function = self.assign("f", f"traced({inner}{options})")
        self.functions.append((function, given, types))
        self.put_values(env, types, f"{function}({', '.join(env.pick(dtype, self) for dtype in given)})")

    def call_again(self, env: _Values) -> None:
        function, given, types = self.random.choice(self.functions)
        self.put_values(env, types, f"{function}({', '.join(env.pick(dtype, self) for dtype in given)})")

    def inner(
        self,
        prefix: str,
        env: _Values,
        given: tuple[tuple[str, str], ...],
        types: tuple[str, ...],
        depth: int,
        counter: str = "",
    ) -> str:
        """Write a Python function with results of `types`; return its name."""
        name = self.new(prefix)
        self.put(f"def {name}({', '.join(argument for _, argument in given)}):")
        known = self.functions
        self.functions = list(known)
        with self.deeper():
            own = env.child(given)
            self.body(own, depth, self.random.randint(0, 4))
            results = ", ".join([f"{counter} + 1"] * bool(counter) + [own.pick(dtype, self) for dtype in types])
            self.put(f"return [{results}]")
        self.functions = known
        return name

    def types(self) -> tuple[str, ...]:
        return tuple(self.random.choices(_ARGUMENTS, k=self.random.randint(1, 3)))

    def put_values(self, env: _Values, types: tuple[str, ...], text: str) -> None:
        names = [self.new("t") for _ in types]
        wanted = ", ".join(f"tf.{dtype}" for dtype in types)
        self.put(f"{', '.join(names)}, = several([{wanted}], lambda: {text})")
        for dtype, name in zip(types, names, strict=True):
            env.add(dtype, name)

    # Any op of the registry.

    def wild(self, env: _Values) -> None:
        names = _usable(self.table)
        op = self.table.op(self.random.choice(names))
        while op is not None and (
            not self.may_draw(op) or (not self.table.kernels(op.name) and self.random.random() < _KNOWN_KERNELS)
        ):
            op = self.table.op(self.random.choice(names))
        assert op is not None, "the table lists its own ops"
        attrs: dict[str, object] = {}
        words = [f"{arg.name}={self.operand(op, arg, attrs, env)}" for arg in op.inputs]
        inferred = {name for arg in op.inputs for name in (arg.type_attr, arg.number_attr, arg.type_list_attr) if name}
        for name, kind in op.attr_types.items():
            if name in inferred or (
                name in op.defaults and (kind not in templates.KINDS or self.random.random() < 0.7)
            ):
                continue
            attrs[name], text = self.attr(op, name, kind)
            words.append(f"{name}={text}")
        if any(keyword.iskeyword(word.split("=")[0]) for word in words):
            return
        text = f"tf.raw_ops.{op.name}({', '.join(words)})"
        outputs = _output_types(op, attrs)
        place = self.random.randrange(len(outputs)) if outputs else 0
        dtype = outputs[place] if outputs else ""
        if dtype in ("", "unknown"):
            self.put(f"made(tf.float32, lambda: {text})")
        else:
            self.put_value(env, dtype, text, place)

    def object_templates(self) -> Sequence[tuple[str, str]]:
        """List the objects that functions may capture."""
        return templates.OBJECTS

    def may_draw(self, op: OpDef) -> bool:
        """Return whether an op of the registry may be in the program."""
        return True

    def operand(self, op: OpDef, arg: ArgSpec, attrs: dict[str, object], env: _Values) -> str:
        if arg.type_list_attr:
            types = tuple(self.random.choices(_ARGUMENTS, k=self.random.randint(1, 3)))
            attrs[arg.type_list_attr] = types
            return f"[{', '.join(env.pick(dtype, self) for dtype in types)}]"
        if arg.type:
            dtype = _python(arg.type)
        else:
            if arg.type_attr not in attrs:
                attrs[arg.type_attr] = self.dtype_for(op, arg.type_attr, env)
            dtype = str(attrs[arg.type_attr])
        if arg.is_ref:
            return self.ref(dtype)
        if not arg.number_attr:
            return env.pick(dtype, self)
        count = attrs.setdefault(arg.number_attr, self.random.randint(1, 3))
        assert isinstance(count, int), "a number attribute holds a number"
        return f"[{', '.join(env.pick(dtype, self) for _ in range(count))}]"

    def ref(self, dtype: str) -> str:
        known = self.ref_variables.get(dtype, [])
        return self.random.choice(known) if known else f"tf.raw_ops.VariableV2(shape=[2], dtype=tf.{dtype})"

    def dtype_for(self, op: OpDef, attr: str, env: _Values) -> str:
        allowed = [_python(one) for one in op.allowed.get(attr, ())] or list(_COMMON)
        allowed = [one for one in allowed if one in templates.DTYPES] or ["float32"]
        at_hand = [one for one in allowed if env.has(one)]
        return self.random.choice(at_hand if at_hand and self.random.random() < 0.6 else allowed)

    def attr(self, op: OpDef, name: str, kind: str) -> tuple[object, str]:
        """Choose a value for an attribute: what the outputs' types may depend on, and its text."""
        if kind == "type":
            dtype = self.dtype_for(op, name, _Values())
            return dtype, f"tf.{dtype}"
        if kind == "list(type)":
            types = tuple(self.random.choices(_COMMON, k=self.random.randint(1, 2)))
            return types, f"[{', '.join(f'tf.{dtype}' for dtype in types)}]"
        if op.allowed.get(name):
            chosen = self.random.choice(op.allowed[name])
            text = repr(chosen.decode() if isinstance(chosen, bytes) else chosen)
            return chosen, f"[{text}]" if kind.startswith("list") else text
        if kind == "int":
            number = self.random.randint(1, 3)
            return number, str(number)
        if kind == "list(int)":
            return (), str([1] * self.random.choice((1, 2, 4, 4, 5)))
        return (), self.random.choice(templates.ATTRS[kind])

    # Lines.

    @contextmanager
    def around(self, env: _Values) -> Iterator[None]:
        """Write what a statement is put in: device scopes, control inputs, colocation."""
        outer = self.indent
        while self.random.random() < self.scope_rate and self.indent < min(outer + 3, _DEEPEST):
            self.put(f"with {self.surrounding(env)}:")
            self.indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.put("pass")
        self.indent = outer

    def surrounding(self, env: _Values) -> str:
        chance = self.random.random()
        if chance < 0.5:
            return f"tf.device({self.device_text()})"
        if chance < 0.53:
            return f"v1.device(lambda op: {self.device_text()} if op.inputs else op.device)"
        if chance < 0.55:
            return "tf.xla.experimental.jit_scope()"
        if chance < 0.75 or self.random.random() > self.colocations:
            return f"tf.control_dependencies([{env.pick_any(self)}])"
        if chance < 0.9:
            return f"v1.colocate_with({env.pick_any(self)}{self.maybe(0.3, ', ignore_existing=True')})"
        if chance < 0.97:
            return f"group({self.random.choice(('a', 'b', 'main'))!r}{self.maybe(0.2, ', ' + repr('b'))})"
        return f"tf.control_dependencies([{env.pick_any(self)}, {env.pick_any(self)}])"

    @contextmanager
    def scope(self, rate: float = 0.5, real: bool = False) -> Iterator[None]:
        if self.random.random() >= rate:
            yield
            return
        self.put(f"with tf.device({self.real_device() if real else self.device_text()}):")
        with self.deeper():
            yield

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.indent += 1
        yield
        self.indent -= 1

    def device_text(self) -> str:
        return repr(self.random.choice(self.devices))

    def real_device(self) -> str:
        return repr(self.random.choice([*self.real, None]))

    def argument_device(self) -> str:
        """Choose where an argument is: on a GPU in every second case, if there is one."""
        gpus = [device for device in self.real if device and device.startswith("/GPU")]
        return repr(self.random.choice(gpus)) if gpus and self.random.random() < 0.5 else self.real_device()

    def way_to_call(self) -> str:
        """Choose whether a call is only placed, or also computed where simplace stands in for GPUs.

        Ops that are drawn from the registry may do anything when they run, and queues would wait for ever.
        """
        waits = any(kind in _WAITING for kind, _ in self.objects)
        has_gpus = any(device and device.startswith("/GPU") for device in self.real)
        return "compute" if has_gpus and self.wildness == 0.0 and not waits else "call"

    def results(self, env: _Values) -> str:
        names = [env.pick_any(self) for _ in range(self.random.randint(0, 3))]
        return f"[{', '.join(names)}]"

    def maybe(self, rate: float, text: str) -> str:
        return text if self.random.random() < rate else ""

    def _shape(self, dtype: str) -> str:
        return "None" if dtype in ("resource", "variant") else self.random.choice(("None", "None", "[2, 2]"))

    def assign(self, prefix: str, text: str) -> str:
        name = self.new(prefix)
        self.put(f"{name} = {text}")
        return name

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def new(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"


class _EagerProgram(_Program):
    """Write one program that runs op by op: the same ops, values and objects, without anything around them but scopes.

    What is drawn from the registry runs for real, so ops with a state, which may wait, print or write files, are left
    out.
    """

    def write(self) -> str:
        if not self.soft:
            self.put("tf.config.set_soft_device_placement(False)")
        env = _Values(self._outside())
        for dtype in self.random.choices(_ARGUMENTS, k=self.random.randint(1, 4)):
            env.add(dtype, self.assign("x", f"value({dtype!r}, {self.argument_device()})"))
        self.body(env, 0, self.random.randint(4, 14))
        return "\n".join(["def program(name):", *self.lines]) + "\n"

    def statement(self, env: _Values, depth: int) -> None:
        if self.random.random() < self.wildness:
            self.wild(env)
        else:
            self.template(env)

    def surrounding(self, env: _Values) -> str:
        return f"tf.device({self.device_text()})"

    def may_draw(self, op: OpDef) -> bool:
        return not op.is_stateful

    def object_templates(self) -> Sequence[tuple[str, str]]:
        return [each for each in templates.OBJECTS if each[0] not in _WAITING]


class _Values:
    """Know the names of the values at hand, by data type."""

    def __init__(self, values: Sequence[tuple[str, str]] = (), outer: _Values | None = None) -> None:
        self._own: dict[str, list[str]] = {}
        self._outer = outer
        for dtype, name in values:
            self.add(dtype, name)

    def child(self, values: Sequence[tuple[str, str]]) -> _Values:
        return _Values(values, self)

    def add(self, dtype: str, name: str) -> None:
        self._own.setdefault(dtype, []).append(name)

    def names(self, dtype: str) -> list[str]:
        outer = self._outer.names(dtype) if self._outer else []
        return outer + self._own.get(dtype, []) * 2

    def has(self, dtype: str) -> bool:
        return bool(self.names(dtype))

    def pick(self, dtype: str, program: _Program) -> str:
        """Choose a value of a type, or the text that makes one."""
        known = self.names(dtype)
        if known and program.random.random() < 0.9:
            return program.random.choice(known)
        if dtype in templates.CONSTANTS and program.random.random() < 0.7:
            return program.random.choice(templates.CONSTANTS[dtype])
        return f"unknown(tf.{dtype})"

    def pick_scalar(self, program: _Program) -> str:
        return f"made(tf.bool, lambda: tf.reshape({self.pick('bool', program)}, []))"

    def pick_any(self, program: _Program) -> str:
        every = [name for dtype in templates.DTYPES for name in self.names(dtype)]
        return program.random.choice(every) if every else "tf.constant(1.0)"


def _needs(text: str) -> set[str]:
    return {word.split("_", 1)[1] for word in _HOLE.findall(text) if "_" in word}


def _odd_devices(gpus: int, soft: bool, chosen: random.Random) -> list[str | None]:
    """List device strings that leave something open, or name no device: those are rarer with soft placement off."""
    odd: list[str | None] = [None, "/job:localhost", "/job:localhost/replica:0/task:0", "/device:CPU:*", "/gpu:0"]
    if gpus:
        odd.append("/device:GPU:*")
    if soft or chosen.random() < 0.2:
        odd += ["/GPU:7", "/device:GPU:*", "/CPU:9", "/task:0/GPU:1"]
    if chosen.random() < 0.05:
        odd += ["/job:worker/task:3", "/task:1"]
    return odd


_LISTS: dict[str, tuple[str, ...]] = {}


def _usable(table: KernelTable) -> tuple[str, ...]:
    """List the ops of a table that a program can make: those with no function among their attributes."""
    if table.name not in _LISTS:
        ops = (table.op(name) for name in table.op_names() if not (name.startswith("_") or keyword.iskeyword(name)))
        _LISTS[table.name] = tuple(op.name for op in ops if op is not None and _is_usable(op))
    return _LISTS[table.name]


def _is_usable(op: OpDef) -> bool:
    if _FRAMES.fullmatch(op.name) or _CRASHING.fullmatch(op.name):
        return False
    return all(kind in templates.KINDS or name in op.defaults for name, kind in op.attr_types.items())


def _output_types(op: OpDef, attrs: dict[str, object]) -> list[str]:
    """List the types of an op's outputs, "unknown" where they depend on a default."""
    types: list[str] = []
    for arg in op.outputs:
        if arg.is_ref:
            types.append("unknown")
        elif arg.type_list_attr:
            types += [str(one) for one in _tuple(attrs.get(arg.type_list_attr))]
        else:
            one = _python(arg.type) if arg.type else str(attrs.get(arg.type_attr, "unknown"))
            count = attrs.get(arg.number_attr, 1) if arg.number_attr else 1
            types += [one if one in templates.DTYPES else "unknown"] * (count if isinstance(count, int) else 1)
    return types


def _tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _python(dtype: object) -> str:
    """Name a data type as Python's `tf` does.

    >>> _python(DataType.DT_FLOAT), _python(DataType.DT_HALF)
    ('float32', 'float16')
    """
    return dtypes.format_dtype(DataType(int(dtype))) if isinstance(dtype, int) else "float32"
