"""The user's program, run as `python model.py` would run it, and a record of how it ended."""

from __future__ import annotations

import builtins
import os
import re
import signal
import sys
import traceback
import types
from pathlib import Path
from typing import Any

from simplace.oracle.child import replaced_sources
from simplace.oracle.child.boundary import is_own, wrap_foreign
from simplace.oracle.child.call_limit import Stopped
from simplace.oracle.child.clusters import NoSuchCluster
from simplace.oracle.child.recorder import Recorder, text_of
from simplace.oracle.child.source_lines import OWN, SourceLines

_OWN_FRAME = re.compile(rf'^  File "{re.escape(OWN)}.*\n\n?', re.MULTILINE)
_GRAPH_ERROR = "Graph execution error:"
_IN_USER_CODE = "in user code:"  # AutoGraph's, before its own traceback and then the error
_HEAD = "Traceback (most recent call last):"
_INTERRUPTED = 128 + signal.SIGINT  # Python ends itself by this signal
_NO_PACKAGE = "Python, too, runs a script outside of any package: give one that imports the package"


def new_main(script: str, arguments: tuple[str, ...]) -> types.ModuleType:
    """Make the module that a script is executed in, and set `sys.argv` and `sys.path` for it.

    Its file is absolute, as Python has it: a program may change its folder before it looks for files beside its own.
    """
    module = types.ModuleType("__main__")
    module.__file__ = os.path.join(os.getcwd(), script)
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    return module


def run_script(module: types.ModuleType) -> None:
    """Execute the script of `new_main`, to its end."""
    script = str(module.__file__)
    code = wrap_foreign(compile)(replaced_sources.read_source(script), script, "exec", dont_inherit=True)
    wrap_foreign(exec)(code, module.__dict__)


def failure_of(error: BaseException, lines: SourceLines) -> dict[str, Any] | None:
    """Return a record of how a program terminated early: None if simplace stopped it or it exited with status 0."""
    if isinstance(error, Stopped):
        return None
    if isinstance(error, NoSuchCluster):
        return {"how": "exited", "text": str(error)}
    if isinstance(error, SystemExit):
        status, text = ending_of(error)
        told = f"the program ended with exit status {status}\n{text}".rstrip()
        return {"how": "exited", "text": told, "status": status} if status else None
    if is_own(error):
        return own_failure_of(error)
    told, line = _format_traceback(error, lines), _format_line(error, lines)
    status = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return {"how": "raised", "text": told, "line": line, "status": status}


def call_excepthook(error: BaseException) -> BaseException:
    """Call the `sys.excepthook` that a program has set; return what ends the program, which may be the hook's own exit.

    Nothing is called for what Python calls it for neither, nor for an error of simplace.
    """
    if sys.excepthook is sys.__excepthook__ or isinstance(error, (SystemExit, Stopped)) or is_own(error):
        return error
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename.startswith(OWN):
        step = step.tb_next
    try:
        wrap_foreign(sys.excepthook)(type(error), error, step)
    except SystemExit as end:
        return end
    except Exception as failed:
        text = "".join(traceback.format_exception(failed))
        print(f"Error in sys.excepthook:\n{_OWN_FRAME.sub('', text)}", file=sys.stderr)
    return error


def own_failure_of(error: BaseException) -> dict[str, Any]:
    """Return a record of an error in simplace itself, with all of its frames."""
    at = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {frame.filename}:{frame.lineno}" for frame in at)
    whole = "".join(traceback.format_exception(error)).rstrip()
    return {"how": "internal", "text": whole, "line": f"{first_line(error)}{where}"}


def report_own_error(error: Exception, recorder: Recorder) -> None:
    """Record an error in simplace itself, which the program may handle as if it were TensorFlow's."""
    if not isinstance(error, NoSuchCluster):
        recorder.event("failure", **own_failure_of(error))


def ending_of(error: SystemExit) -> tuple[int, str]:
    """Return the exit status that Python would end with, and the text that it would print."""
    if error.code is None:
        return 0, ""
    return (int(error.code), "") if isinstance(error.code, int) else (1, text_of(error.code))


def line_of(error: BaseException, lines: SourceLines) -> str:
    """Return the user's innermost line that an exception came through, "" where there is none."""
    own = lines.of_traceback(traceback.extract_tb(error.__traceback__))
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def first_line(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    return traceback.format_exception_only(error)[-1].splitlines()[0]


def tell_of_thread(thread: Any, lines: SourceLines, recorder: Recorder) -> None:
    """Report how a thread of the program ended, as Python does, or as an internal failure where simplace caused it."""
    error = thread.exc_value
    if error is None or isinstance(error, (SystemExit, Stopped)):
        return
    if is_own(error):
        recorder.event("failure", **own_failure_of(error))
        return
    recorder.uncaught(error)
    name = thread.thread.name if thread.thread is not None else "<unknown>"
    print(f"Exception in thread {name}:\n{_format_traceback(error, lines)}", file=sys.stderr)
    recorder.remark(f"The thread {name} ended with {_format_line(error, lines)}.")


def _format_traceback(error: BaseException, lines: SourceLines) -> str:
    """Return a traceback of the user's own frames, with the exceptions that it was caused by or groups."""
    shown = traceback.TracebackException.from_exception(error, compact=True)
    _keep_own(shown, lines)
    text = _OWN_FRAME.sub("", "".join(shown.format()))  # TensorFlow's messages contain frames, too
    return text.replace(_HEAD, f"{_HEAD[:-2]}, the program's own lines):").rstrip()


def _keep_own(shown: traceback.TracebackException, lines: SourceLines) -> None:
    """Drop all frames that are not the user's, and chained exceptions without frames of the user's."""
    own = lines.of_traceback(shown.stack)
    shown.stack = traceback.StackSummary.from_list(own) if own else None  # type: ignore[assignment]
    for part in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if part is not None:
            _keep_own(part, lines)
    if shown.__context__ is not None and shown.__context__.stack is None:
        shown.__context__ = None


def _format_line(error: BaseException, lines: SourceLines) -> str:
    """Return the exception in one line, with the user's line that raised it and what else to try."""
    name = type(error).__qualname__
    texts = "".join(traceback.format_exception_only(error)).splitlines()
    what = next((text for text in texts if text.partition(":")[0].rpartition(".")[2] == name.rpartition(".")[2]), name)
    if what.endswith(_GRAPH_ERROR):
        what = what.removesuffix(_GRAPH_ERROR) + _reason_of("\n".join(texts))
    elif what.endswith(_IN_USER_CODE):
        what = next(text.strip() for text in reversed(texts) if text.strip())
    own = lines.of_traceback(traceback.extract_tb(error.__traceback__))
    at = f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        at = f" at {lines.shorten(error.filename)}:{error.lineno}"
    hint = f"; {_NO_PACKAGE}" if isinstance(error, ImportError) and "no known parent package" in text_of(error) else ""
    return f"{what}{at}{hint}"


def _reason_of(text: str) -> str:
    """Return the sentence behind a "Graph execution error", which comes after the definition of its node."""
    reasons = [
        line for line in text.splitlines() if line[:1].strip() and not line.startswith(("Detected at node", "node"))
    ]
    return next((line for line in reversed(reasons) if not line.endswith(_GRAPH_ERROR)), _GRAPH_ERROR)
