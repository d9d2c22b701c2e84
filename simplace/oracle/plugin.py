"""The emulated GPUs' shared library: compiled on first use, kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from simplace.errors import ProgramError

_SOURCE = Path(__file__).with_name("plugin.c")
_LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


def cache_directory() -> Path:
    """Give the directory that simplace keeps what it built in; make it if need be."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    directory = Path(base, "simplace")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProgramError(
            f"{directory} can't be made ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from error
    return directory


def build(tensorflow_version: str) -> Path:
    """Give the path of the plugin for the installed TensorFlow, and compile it if it is not in the cache.

    Raise `ProgramError` if there is no C compiler, or if it fails.
    """
    tensorflow = _tensorflow_directory()
    key = hashlib.sha256(_SOURCE.read_bytes() + str(tensorflow).encode()).hexdigest()[:12]
    built = cache_directory() / f"gpus-{tensorflow_version}-{key}.so"
    if not built.exists():
        _compile(compiler(), tensorflow, built)
    return built


def compiler() -> list[str]:
    """Find a C compiler: $CC, else cc, gcc or clang, else the one in the ziglang package."""
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


def command(compiler: list[str], tensorflow: Path, output: Path) -> list[str]:
    """Write the command line that compiles the plugin against a TensorFlow wheel.

    >>> command(["cc"], Path("/tf"), Path("/tmp/x.so"))[:4]
    ['cc', '-shared', '-fPIC', '-O1']
    """
    libraries = [str(tensorflow / name) for name in _LIBRARIES if (tensorflow / name).exists()]
    options = ["-shared", "-fPIC", "-O1", "-std=gnu11", f"-I{tensorflow / 'include'}", f"-Wl,-rpath,{tensorflow}"]
    return [*compiler, *options, str(_SOURCE), "-o", str(output), *libraries]


def _compile(compiler: list[str], tensorflow: Path, output: Path) -> None:
    """Compile into a file beside `output`, then move it there, so that no other process sees half of it."""
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        partial = Path(scratch, output.name)
        line = command(compiler, tensorflow, partial)
        environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": scratch}  # zig would leave 100 MB in the user's cache
        try:
            result = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        except OSError as error:
            raise ProgramError(f"the C compiler {compiler[0]!r} can't be started ({error}); see $CC") from error
        if result.returncode:
            raise ProgramError(
                f"the C compiler {shlex.join(compiler)} failed on simplace's GPU plugin: {_complaint(result.stderr)}"
            )
        os.replace(partial, output)


def _complaint(output: str) -> str:
    lines = output.strip().splitlines() or ["it said nothing"]
    return next((line for line in lines if "error" in line.lower()), lines[-1])


def _tensorflow_directory() -> Path:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ProgramError("TensorFlow is not installed in this Python: pip install tensorflow")
    return Path(spec.origin).parent
