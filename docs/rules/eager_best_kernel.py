"""An op outside of functions asks for nothing."""

import tensorflow as tf

a = tf.ones([4, 4])
tf.matmul(a, a)
