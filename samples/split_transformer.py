"""A transformer split over four GPUs; the gradient tape is asked for gradients outside of the device scopes."""

import tensorflow as tf

BATCH, LENGTH, WIDTH, HEADS, BLOCKS, WORDS = 8, 32, 64, 4, 4, 256
GPUS = [device.name for device in tf.config.list_logical_devices("GPU")]
tf.random.set_seed(1)


def choose_device(block):
    """Return the GPU of a block: as many blocks on each, in their order."""
    return GPUS[block * len(GPUS) // BLOCKS] if GPUS else "CPU:0"


def make_weight(*shape):
    return tf.Variable(tf.random.normal(shape, stddev=0.05))


class Block:
    """Self-attention and two dense layers, each with a residual connection."""

    def __init__(self):
        self.weights = [make_weight(WIDTH, WIDTH) for _ in range(4)]
        self.weights += [make_weight(WIDTH, 4 * WIDTH), make_weight(4 * WIDTH, WIDTH)]

    def __call__(self, x):
        query, key, value, merge, widen, narrow = self.weights
        heads = [self.split(tf.einsum("blw,wv->blv", normalize(x), each)) for each in (query, key, value)]
        scores = tf.nn.softmax(tf.matmul(heads[0], heads[1], transpose_b=True) * (WIDTH // HEADS) ** -0.5)
        mixed = tf.reshape(tf.transpose(tf.matmul(scores, heads[2]), [0, 2, 1, 3]), [BATCH, LENGTH, WIDTH])
        x += tf.einsum("blw,wv->blv", mixed, merge)
        return x + tf.einsum("blw,wv->blv", tf.nn.gelu(tf.einsum("blw,wv->blv", normalize(x), widen)), narrow)

    @staticmethod
    def split(x):
        return tf.transpose(tf.reshape(x, [BATCH, LENGTH, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])


def normalize(x):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


with tf.device(choose_device(0)):
    embedding = make_weight(WORDS, WIDTH)
blocks = []
for number in range(BLOCKS):
    with tf.device(choose_device(number)):
        blocks.append(Block())
with tf.device(choose_device(BLOCKS - 1)):
    head = make_weight(WIDTH, WORDS)
variables = [embedding, *(weight for block in blocks for weight in block.weights), head]


@tf.function
def train_step(words, following):
    with tf.GradientTape() as tape:
        with tf.device(choose_device(0)):
            x = tf.gather(embedding, words)
        for number, block in enumerate(blocks):
            with tf.device(choose_device(number)), tf.name_scope(f"block_{number}"):
                x = block(x)
        with tf.device(choose_device(BLOCKS - 1)):
            logits = tf.einsum("blw,wv->blv", x, head)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(following, logits))
    gradients = tape.gradient(loss, variables)  # in no scope
    for variable, gradient in zip(variables, gradients):
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    return loss


text = tf.random.uniform([BATCH, LENGTH + 1], maxval=WORDS, dtype=tf.int32)
print(f"loss: {float(train_step(text[:, :-1], text[:, 1:])):.3f}")
