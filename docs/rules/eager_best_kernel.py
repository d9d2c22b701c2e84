"""An op outside of functions requests nothing."""

import tensorflow as tf

a = tf.ones([4, 4])
tf.matmul(a, a)
