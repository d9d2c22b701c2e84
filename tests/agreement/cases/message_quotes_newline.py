"""A refusal quotes string attributes as C does, so a newline in one does not break its line (attr_value_util.cc)."""

# ruff: noqa
# devices: cpu:1,gpu:1


def program(name):
    def steps():
        with tf.device("/GPU:0"):
            tf.print("a")
        yield

    session(name, steps, soft=False)
