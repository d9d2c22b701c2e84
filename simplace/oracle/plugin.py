"""The emulated GPUs' shared library: compiled on first use, kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import sys
from pathlib import Path

from simplace.errors import ProgramError
from simplace.oracle.cache import cache_folder, find_file, keep_file
from simplace.oracle.orphan import run_with_parent
from simplace.oracle.scratch import scratch_folder

_SOURCE = Path(__file__).with_name("plugin.c")
_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
_LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


def build_plugin(tensorflow_version: str) -> Path:
    """Return the path of the plugin for the installed TensorFlow; compile it if the cache has none that is whole.

    Raise `ProgramError` if there is no C compiler, if it fails, or if what it made cannot be loaded.
    """
    tensorflow = tensorflow_folder()
    made_for = f"gpus-{tensorflow_version}-{build_key(_SOURCE.read_bytes())}"
    return find_file(made_for, ".so") or _compile_plugin(find_compiler(), tensorflow, made_for)


def build_key(*parts: bytes) -> str:
    """Return a hash of the installed TensorFlow, of this system, and of what else something is made of."""
    tensorflow = tensorflow_folder()
    libraries = [tensorflow / name for name in _LIBRARIES]
    found = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in libraries if path.exists()]
    made_for = (str(tensorflow), found, platform.machine(), platform.libc_ver(), parts)
    return hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]


def find_compiler() -> list[str]:
    """Return the command of a C compiler: $CC, else cc, gcc or clang, else the one in the ziglang package."""
    if chosen := shlex.split(os.environ.get("CC", "")):
        return chosen
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise ProgramError(
        "emulated GPUs need a C compiler once, to build a small plugin, and there is no cc, gcc or clang here; "
        "install one (apt install gcc), or: pip install ziglang"
    )


def compile_command(compiler: list[str], tensorflow: Path, output: Path) -> list[str]:
    """Return the command line that compiles the plugin against a TensorFlow wheel.

    >>> compile_command(["cc"], Path("/tf"), Path("/tmp/x.so"))[:4]
    ['cc', '-shared', '-fPIC', '-O1']
    """
    libraries = [str(tensorflow / name) for name in _LIBRARIES if (tensorflow / name).exists()]
    options = ["-shared", "-fPIC", "-O1", "-std=gnu11", f"-I{tensorflow / 'include'}", f"-Wl,-rpath,{tensorflow}"]
    return [*compiler, *options, str(_SOURCE), "-o", str(output), *libraries]


def _compile_plugin(compiler: list[str], tensorflow: Path, made_for: str) -> Path:
    """Compile the plugin, and keep it if it can be loaded."""
    if shutil.which(compiler[0]) is None:
        raise ProgramError(f"the C compiler {compiler[0]!r} cannot be started; set CC to another one")
    with scratch_folder(cache_folder()) as scratch:
        library = Path(scratch, "gpus.so")
        line = compile_command(compiler, tensorflow, library)
        environment = {**os.environ, "TMPDIR": scratch, "ZIG_GLOBAL_CACHE_DIR": scratch}  # zig would leave 100 MB
        result = run_with_parent(line, environment)
        if result.returncode:
            raise ProgramError(
                f"the C compiler {shlex.join(compiler)} failed on simplace's GPU plugin: "
                f"{_find_complaint(result.stderr)}"
            )
        _require_loadable(library, compiler)
        return keep_file(library, made_for, ".so")


def _require_loadable(library: Path, compiler: list[str]) -> None:
    """Load the library in a process of its own, which it may crash."""
    result = run_with_parent([sys.executable, "-c", _LOAD, str(library)], os.environ)
    if result.returncode:
        raise ProgramError(
            f"the GPU plugin that the C compiler {shlex.join(compiler)} made can't be loaded: "
            f"{_find_complaint(result.stderr)}; set CC to another compiler"
        )


def _find_complaint(output: str) -> str:
    lines = output.strip().splitlines() or ["it printed nothing"]
    return next((line for line in lines if "error" in line.lower()), lines[-1])


def tensorflow_folder() -> Path:
    """Return the folder of the installed TensorFlow; raise `ProgramError` where there is none."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ProgramError("TensorFlow is not installed in this Python: pip install tensorflow")
    return Path(spec.origin).parent
