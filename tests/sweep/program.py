"""The swept program: call a function of each named op or Python function, for every data type, place and size.

    program.py PROGRESS ops|surface SKIPPED NAME...

SKIPPED are cases not to call, with commas between them.

Write to the file PROGRESS: "begin NAME", for each case "case CASE" and then "called" or "raised ERROR", and at the end
"end NAME", or "none NAME WHY" where no case could be built.
"""

import signal
import sys

import schema
import surface
import tensorflow as tf

DTYPES = ("float32", "float16", "int32", "int64", "complex64", "bool")
_KINDS = {"ops": schema.Op, "surface": surface.Function}
_PATIENCE = 30  # seconds for a case: what waits for others, such as Unstage, is ended by a signal
v1 = tf.compat.v1


def main(progress, kind, skipped, *names):
    with open(progress, "a", buffering=1) as told:
        for name in names:
            print("begin", name, file=told)
            why = sweep(_KINDS[kind](name), name, skipped.split(","), told)
            print(f"none {name} {why}" if why else f"end {name}", file=told)


def sweep(built, name, skipped, told):
    """Call all cases of a name; return why there are none."""
    gpus, why = len(tf.config.list_logical_devices("GPU")), ""
    is_called = False
    for dtype in DTYPES:
        shapes = []
        for empty in (False, True):
            try:
                function, specs = built.function(dtype, empty)
            except schema.NotBuilt as error:
                why = why or str(error)
                continue
            if specs in shapes:  # nothing of it can be empty
                continue
            shapes.append(specs)
            for case, call in cases(built, name.replace(".", "_"), dtype, empty, gpus):
                is_called = True
                if case not in skipped:
                    print("case", case, file=told)
                    print(attempt(lambda: call(function, specs, case, dtype, gpus)), file=told)  # noqa: B023
    return "" if is_called else why


def cases(built, name, dtype, empty, gpus):
    """Name the ways to call one: with arguments on GPUs, in host memory, and in a session."""
    name = f"{name}_{dtype}{'_empty' * empty}"
    if built.takes_references or (dtype == "float32" and not empty):
        yield f"{name}_session", run_session
    if built.takes_references:
        return
    if gpus:
        yield f"{name}_GPU", call_function
    yield f"{name}_CPU", call_function


def attempt(call):
    signal.alarm(_PATIENCE)
    try:
        call()
    except Exception as error:  # what TensorFlow says to values that make no sense is not looked at
        return f"raised {type(error).__name__}"
    finally:
        signal.alarm(0)
    return "called"


def call_function(function, specs, case, dtype, gpus):
    """Call a function with its arguments on one GPU after the other, or all in host memory."""
    arguments = []
    for number, (kind, shape) in enumerate(specs):
        with tf.device(f"/GPU:{number % gpus}" if case.endswith("_GPU") else "/CPU:0"):
            arguments.append(schema.argument(kind, shape, dtype))

    def step(*given):
        graph = tf.compat.v1.get_default_graph()
        return function(*(graph.capture(each.handle) if hasattr(each, "handle") else each for each in given))

    step.__name__ = case
    signature = [
        tf.TensorSpec(shape, kind) if not isinstance(argument, tf.Variable) else None
        for (kind, shape), argument in zip(specs, arguments, strict=True)
    ]
    tf.function(step, autograph=False, input_signature=signature if all(signature) else None)(*arguments)


def run_session(function, specs, case, dtype, gpus):
    """Run it in a session, its tensors fed, its references made on a GPU if there is one."""
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("/GPU:0" if gpus else "/CPU:0"):
            inputs, feeds = [], {}
            for kind, shape in specs:
                inputs.append(schema.in_session(kind, shape, dtype))
                if inputs[-1].op.type == "Placeholder":
                    feeds[inputs[-1]] = schema.content(kind, shape)
        results = [each for each in tf.nest.flatten(function(*inputs)) if each is not None]
        session.run(results, feeds)


main(*sys.argv[1:])
