"""What native code prints for a program is passed on; TensorFlow's log is not."""

import io

from simplace.oracle.native_output import NativeOutput, program_lines

LOG = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795190608.121377    2125 port.cc:153] oneDNN custom operations are on.
I0000 00:00:1795190608.122442    2125 cpu_feature_guard.cc:210] This binary is optimized.
To enable the following instructions: AVX2, rebuild TensorFlow.
I0000 00:00:1795190609.1    2125 placer.cc:162] x: (_Arg): /job:localhost/replica:0/task:0/device:CPU:0
I0000 00:00:1795190609.2    2125 execute.cc:1] Executing op __inference_f_9 in device /job:localhost/replica:0/task:0/device:CPU:0
inside 1
2025-01-01 10:00:00.000000: W tensorflow/core/x.cc:3] Failed to place the graph
  a /job:localhost
x: (_Arg): /job:localhost/replica:0/task:0/device:CPU:0
loss: 0.25 - accuracy: 0.9
"""  # noqa: E501


def test_only_the_program_s_own_lines_are_left():
    assert program_lines(LOG) == ["inside 1", "loss: 0.25 - accuracy: 0.9"]


def test_files_are_followed_line_by_line(tmp_path):
    file, shown = tmp_path / "log", io.StringIO()
    output = NativeOutput([(file, shown)])
    output.pass_on()
    file.write_text("one\ntw")
    output.pass_on()
    assert shown.getvalue() == "one\n"
    with file.open("a") as more:
        more.write("o\n")
    output.pass_on()
    assert shown.getvalue() == "one\ntwo\n"
