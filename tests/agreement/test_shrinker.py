"""Shrinking: the smallest program that still has the difference."""

from tests.agreement.shrinker import shrink_with

SOURCE = """\
def program(name):
    def main(x1):
        with tf.device('/CPU:0'):
            t2 = made(tf.float32, lambda: x1 + 1.0)
            with tf.device('/GPU:0'):
                t3 = made(tf.int32, lambda: tf.shape(t2))
        t4 = made(tf.float32, lambda: tf.sin(t2))
        t5, t6, = several([tf.float32, tf.int32], lambda: [t4, t3])
        return [t2, t5]
    call(traced(main), value('float32'))
"""


def having(*words):
    return lambda programs: {name for name, text in programs.items() if all(word in text for word in words)}


def test_only_what_makes_the_difference_is_left():
    assert shrink_with(SOURCE, having("tf.shape", "/GPU:0", "def main")) == (
        "def program(name):\n"
        "    def main(x1):\n"
        "        with tf.device('/GPU:0'):\n"
        "            t3 = made(tf.int32, lambda: tf.shape(t2))\n"
        "        return []\n"
    )


def test_a_block_that_becomes_empty_stays_valid():
    assert (
        shrink_with(SOURCE, having("def main", "return"))
        == "def program(name):\n    def main(x1):\n        return []\n"
    )


def test_a_program_that_never_differs_stays_as_it_is():
    assert shrink_with(SOURCE, lambda programs: set()) == SOURCE
