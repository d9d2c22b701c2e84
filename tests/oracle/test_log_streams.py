"""C's streams, redirected twice: the stream that took the place of `stderr` stays, as TensorFlow may have kept it."""

import subprocess
import sys

PROGRAM = """
import ctypes, sys
from pathlib import Path
from simplace.oracle.child.log_streams import drop_log, redirect_log

library = ctypes.CDLL(None)
drop_log()
kept = ctypes.c_void_p.in_dll(library, "stderr").value
library.fputs(b"nobody reads this\\n", ctypes.c_void_p(kept))
redirect_log(Path(sys.argv[1]))
assert ctypes.c_void_p.in_dll(library, "stderr").value == kept
library.fputs(b"a line of the log\\n", ctypes.c_void_p(kept))
print("a line of the program")
"""


def test_the_stream_stays_where_its_file_changes(tmp_path):
    ran = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("a line of the program\n", "")
    written = {path.read_text() for path in tmp_path.iterdir()}
    assert written == {"a line of the log\n", ""}
