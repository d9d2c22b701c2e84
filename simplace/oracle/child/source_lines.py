"""The user's own source lines behind the ops of a graph and the `tf.device` scopes around them."""

from __future__ import annotations

import inspect
import os
import re
import site
import sysconfig
from collections.abc import Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from traceback import FrameSummary
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.tf_private import loader, ops, origin_info, tf_stack

_GENERATED = "__autograph_generated_file"
# Parts of TensorFlow that make ops of their own for a user's line; the others only make the op that the line names.
_PARTS_OF_THEIR_OWN = ("checkpoint", "data", "distribute", "keras", "saved_model", "tpu", "trackable", "training")
OWN = str(Path(__file__).parents[2]) + os.sep
# Frames of libraries that only hand a call on, by parts of their files' names.
_HANDS_ON = tuple(map(os.path.normpath, (
    "tensorflow/python/util/", "tensorflow/python/autograph/impl/", "tensorflow/python/eager/",
    "/utils/traceback_utils.py", "/utils/deprecation",
)))  # fmt: skip
# Where pip puts packages, in any environment: one may be on the path of another, as with `pip install --target`.
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_APPLY = "apply"  # what a dataset's `apply` calls is what the user wrote
_VERSION = re.compile(r"_?[vV]\d+$")


class _ScopeFile(str):
    """The file that TensorFlow remembers of a device scope, with the user's line, which each op gets with it."""

    at: str
    is_by_library: bool


class SourceLines:
    """The user's frames, without those of libraries, as "file:line" relative to the working directory."""

    def __init__(self, script: str = "") -> None:
        self._given = script
        self._script = os.path.abspath(script) if script else ""
        self._known: dict[str, str] = {}
        self._files: dict[str, str] = {}  # what `_shown_file` says of a file, by its name: hashing code is slow
        paths = sysconfig.get_paths()
        folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
        folders |= {*site.getsitepackages(), site.getusersitepackages()}
        self._packages = tuple(os.path.realpath(paths[key]) + os.sep for key in ("purelib", "platlib"))
        self._makers: dict[str, str] = {}  # the library that a file is of, as `_maker_of` says
        self._libraries = (OWN, *(os.path.realpath(folder) + os.sep for folder in folders))
        self._here = os.getcwd() + os.sep
        self._generated: dict[tuple[str, int], tuple[str, int]] = {}
        self._has_maps = False

    def watch(self, directory: Path) -> None:
        """Observe AutoGraph and device scopes from now on; files that AutoGraph generates go into `directory`."""
        self._has_maps = True
        inside = SimpleNamespace(NamedTemporaryFile=partial(NamedTemporaryFile, dir=directory))
        patch_method(loader, "tempfile", lambda _: inside)
        patch_method(origin_info, "create_source_map", self._keep_map)
        patch_method(ops.Graph, "_add_device_to_stack", self._note_line)

    def _keep_map(self, create: Any) -> Any:
        """Keep the source map of each file that AutoGraph generates: TensorFlow keeps it for one thread only."""

        def create_kept(nodes: Any, code: str, filepath: str) -> Any:
            made = create(nodes, code, filepath)
            for generated, written in made.items():
                self._generated[generated.filename, generated.lineno] = (written.loc.filename, written.loc.lineno)
            return made

        return create_kept

    def _note_line(self, enter: Any) -> Any:
        """Make each `tf.device` remember the user's line."""

        def enter_with_line(graph: Any, device: Any, offset: int = 0) -> Any:
            result = enter(graph, device, offset)
            self.mark_scope(graph)
            return result

        return enter_with_line

    def here(self) -> str:
        """Return the user's line that is being executed, "" if there is none."""
        return self._innermost(tf_stack.extract_stack())

    def of_frames(self) -> str:
        """Return the user's line that is being executed, "" if there is none, without a copy of the stack."""
        return self.trace_op()[0]

    def trace_op(self) -> tuple[str, str]:
        """Return the user's line that is being executed, and the library that makes an op for it.

        That is "" for an op that the line itself asks for; the line is "" if there is none, or where AutoGraph has
        converted it and its maps were not kept. The stack is not copied.
        """
        frame, library = inspect.currentframe(), ""
        files = self._files
        while frame is not None:
            code = frame.f_code
            shown = files.get(code.co_filename)
            if shown is None:
                shown = self._shown_file(code)
            if shown == _GENERATED:
                at = self._generated.get((code.co_filename, frame.f_lineno))
                if at is not None and (own := self._shown(at[0])):
                    return f"{own}:{at[1]}", library
                if not self._has_maps:
                    return "", library
            elif shown:
                return f"{shown}:{frame.f_lineno}", library
            library = library or self._maker_of(code)
            frame = frame.f_back
        return "", library

    def name_call(self) -> str:
        """Return the name of what the user's line calls of a library, "" for nothing that has a name.

        That of a class stands for its constructor, and a function in another one has the name of that.
        """
        inner: list[CodeType] = []
        frame = inspect.currentframe()
        while frame is not None and not self._executes_users(frame):
            inner.append(frame.f_code)
            frame = frame.f_back
        names = (_name_code(code) for code in reversed(inner) if not _hands_on(code)) if frame is not None else iter(())
        return next((name for name in names if name and name != _APPLY), "")

    def _executes_users(self, frame: FrameType) -> bool:
        """Return whether a frame executes a line of the user's, as it is or as AutoGraph writes it."""
        shown = self._shown_file(frame.f_code)
        at = self._generated.get((frame.f_code.co_filename, frame.f_lineno)) if shown == _GENERATED else None
        return bool(shown) and (at is None or bool(self._shown(at[0])))

    def locate_call(self, frame: FrameType) -> tuple[str, str] | None:
        """Return the "file:line" of the call that a frame executes and its extent, None for a frame of a library.

        The extent is "line:column-line:column" as `ast` counts, from 1 and from 0, in bytes.
        """
        shown = self.name_file(frame.f_code)
        if not shown:
            return None
        line, last, column, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        return f"{shown}:{line}", f"{line}:{column}-{last}:{end}"

    def _maker_of(self, code: CodeType) -> str:
        """Return the library that a frame is of, "" for one that makes no ops of its own."""
        known = self._makers.get(code.co_filename)
        if known is None:
            path = os.path.realpath(code.co_filename)
            known = self._makers[code.co_filename] = _name_library(path, self._find_packages(path))
        return known

    def is_of_tensorflow(self, code: CodeType) -> bool:
        """Return whether code is TensorFlow's, but for the parts that call a user's functions, such as strategies."""
        if self._shown_file(code) or self._maker_of(code):
            return False
        path = os.path.realpath(code.co_filename)
        folder = self._find_packages(path)
        return bool(folder) and path.startswith(f"{folder}tensorflow{os.sep}")

    def _find_packages(self, path: str) -> str:
        """Return the folder of packages that a file is in, "" if it is in none."""
        found = _PACKAGES.match(path)
        return found[0] if found else next((folder for folder in self._packages if path.startswith(folder)), "")

    def is_of_user(self, code: CodeType) -> bool:
        """Return whether code is the user's, as AutoGraph writes it or as it is."""
        return bool(self._shown_file(code))

    def name_file(self, code: CodeType) -> str:
        """Return the user's file that code is of, as it is shown, "" for a library's and for what AutoGraph writes."""
        shown = self._shown_file(code)
        return "" if shown == _GENERATED else shown

    def _shown_file(self, code: CodeType) -> str:
        """Return the user's file that code is of, `_GENERATED` for what AutoGraph writes, "" for a library."""
        shown = self._files.get(code.co_filename)
        if shown is None:
            filename = code.co_filename
            shown = self._files[filename] = _GENERATED if _GENERATED in filename else self._shown(filename)
        return shown

    def of_op(self, op: Any) -> str:
        """Return the user's line that made `op`, "" if there is none."""
        return self._innermost(op.traceback)

    def of_code(self, code: Any) -> str:
        """Return where a function of the user's is defined, "" for one of a library."""
        at = (code.co_filename, code.co_firstlineno)
        filename, line = self._generated.get(at, at)
        shown = self._shown(filename)
        return f"{shown}:{line}" if shown else ""

    def of_device(self, op: Any) -> str:
        """Return the line of the innermost `tf.device` around `op` that requests something."""
        for scope in getattr(op, "_device_code_locations", None) or ():
            if scope.obj and scope.obj != "/":
                return str(getattr(scope.filename, "at", ""))
        return ""

    def mark_scope(self, graph: Any) -> None:
        """Make the innermost device scope of a graph remember the user's line that enters it beside TensorFlow's."""
        scope = graph._device_function_stack._stack[-1]
        library = self.trace_op()[1]
        scope.filename = _ScopeFile(scope.filename or "")
        scope.filename.at, scope.filename.is_by_library = self.here(), bool(library)

    def is_of_library(self, op: Any) -> bool:
        """Return whether a library, such as a strategy, made the innermost device scope around `op`."""
        scopes = getattr(op, "_device_code_locations", None) or ()
        inner = next((scope for scope in scopes if scope.obj and scope.obj != "/"), None)
        return bool(inner is not None and getattr(inner.filename, "is_by_library", False))

    def of_traceback(self, frames: Iterable[Any]) -> list[Any]:
        """Return those frames of a Python traceback that are the user's, their files renamed as they are shown."""
        return [_rename_file(frame, shown) for frame in frames if (shown := self._shown(frame.filename))]

    def shorten(self, filename: str) -> str:
        """Return the name that is shown of a file of the user's, other names as they are."""
        return self._shown(filename) or filename

    def _innermost(self, trace: Any) -> str:
        if trace is None:  # an op that C++ made
            return ""
        return self._last_shown(trace.get_user_frames()) or self._last_shown(trace)  # the first is three times as fast

    def _last_shown(self, trace: Any) -> str:
        for frame in reversed(list(trace)):
            filename = frame.filename
            if _GENERATED in filename:
                filename, line = self._generated.get((filename, frame.lineno), (filename, 0))
                if shown := self._shown(filename):
                    return f"{shown}:{line}"
            elif shown := self._shown(filename):
                return f"{shown}:{frame.lineno}"  # which TensorFlow finds anew each time
        return ""

    def _shown(self, filename: str) -> str:
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self._classify(filename)
        return known

    def _classify(self, filename: str) -> str:
        if filename.startswith("<") or _GENERATED in filename:
            return ""
        whole = os.path.abspath(filename)
        if whole != self._script and self._is_of_library(os.path.realpath(whole)):
            return ""
        if whole.startswith(self._here):
            return whole.removeprefix(self._here)
        return self._given if whole == self._script else filename

    def _is_of_library(self, path: str) -> bool:
        return path.startswith(self._libraries) or bool(self._find_packages(path))


def _rename_file(frame: FrameSummary, shown: str) -> FrameSummary:
    """Rename a frame's file to a name under which it may be found no more: its text is read before."""
    assert frame.line is not None
    frame.filename = shown
    return frame


def _hands_on(code: CodeType) -> bool:
    return code.co_filename.startswith(OWN) or any(part in code.co_filename for part in _HANDS_ON)


def _name_code(code: CodeType) -> str:
    """Return the name by which a user calls a function of a library: of a statement, that of its keyword.

    >>> def outer(): return [each for each in (lambda: 0,)][0]
    >>> _name_code(outer().__code__), _name_code(SourceLines.__init__.__code__), _name_code(_name_code.__code__)
    ('outer', 'SourceLines', '_name_code')
    """
    *scopes, name = code.co_qualname.partition(".<locals>")[0].split(".")
    if name == "__init__" and scopes:
        name = scopes[-1]
    if name.startswith("<"):
        return ""
    name = name[2:-2] if name.startswith("__") and name.endswith("__") else name.rstrip("_")
    return _VERSION.sub("", name).removesuffix("_stmt")


def _name_library(filename: str, folder: str) -> str:
    """Return the library of a file if that makes ops of its own: any package, or a part of TensorFlow that does.

    `folder` is the folder of packages that the file is in, if it is in one.
    """
    if not folder:
        return ""
    parts = filename.removeprefix(folder).split(os.sep)
    if parts[0] != "tensorflow":
        return parts[0].removesuffix(".py")
    return f"tf.{parts[2]}" if len(parts) > 3 and parts[2] in _PARTS_OF_THEIR_OWN else ""
