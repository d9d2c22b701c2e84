"""Import a graph by TensorFlow's C library, without TensorFlow's Python, and tell what it says.

Mirrors how python/framework/importer.py calls tensorflow/c/c_api.cc. Loading the library takes a tenth of the time of
`import tensorflow`, since its functions are looked up when they are first called.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal

from simplace.oracle.child.confine import confine_writing

_ACCEPTED, _REFUSED = b"+", b"-"  # how an answer begins
_SECONDS = 3  # of processor
_MEMORY = 1 << 30
_DIE_WITH_PARENT = 1
_POINTER = ctypes.c_void_p
_SIGNATURES = {
    "TF_NewGraph": (_POINTER,),
    "TF_NewStatus": (_POINTER,),
    "TF_NewImportGraphDefOptions": (_POINTER,),
    "TF_NewBufferFromString": (_POINTER, ctypes.c_char_p, ctypes.c_size_t),
    "TF_GraphImportGraphDef": (None, _POINTER, _POINTER, _POINTER, _POINTER),
    "TF_GetCode": (ctypes.c_int, _POINTER),
    "TF_Message": (ctypes.c_char_p, _POINTER),
    "TF_DeleteGraph": (None, _POINTER),
    "TF_DeleteBuffer": (None, _POINTER),
}


class CLibrary:
    """TensorFlow's C library, from the files that make it up, in the order in which they need each other."""

    def __init__(self, files: list[str]) -> None:
        system = ctypes.CDLL(None)
        system.dlopen.restype, system.dlopen.argtypes = _POINTER, (ctypes.c_char_p, ctypes.c_int)
        for file in files:
            handle = system.dlopen(os.fsencode(file), os.RTLD_LAZY | os.RTLD_GLOBAL)  # ctypes would look up everything
            if not handle:
                raise OSError(f"{file} cannot be loaded")
        self._library = ctypes.CDLL(files[-1], handle=handle)
        for name, (returned, *taken) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = returned, taken

    def import_graph(self, graph: bytes) -> str:
        """Return TensorFlow's reason not to import a serialized GraphDef, "" if it imports it."""
        library = self._library
        status, made = library.TF_NewStatus(), library.TF_NewGraph()
        buffer = library.TF_NewBufferFromString(graph, len(graph))
        library.TF_GraphImportGraphDef(made, buffer, library.TF_NewImportGraphDefOptions(), status)
        library.TF_DeleteBuffer(buffer)
        library.TF_DeleteGraph(made)
        if not library.TF_GetCode(status):
            return ""
        return library.TF_Message(status).decode(errors="replace") or "it gives no reason"


def main(parent: int, graph: int, answer: int, files: list[str]) -> None:
    """Write what TensorFlow says of the graph in a file; `graph` and `answer` are descriptors of files.

    The process ends with its parent.
    """
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    confine_writing([])  # TensorFlow computes constants as it imports a graph
    library = CLibrary(files)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    reason = library.import_graph(os.pread(graph, os.fstat(graph).st_size, 0))
    os.write(answer, _REFUSED + reason.encode() if reason else _ACCEPTED)
    os._exit(0)  # without TensorFlow's shutdown
