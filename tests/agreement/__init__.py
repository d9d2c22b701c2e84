"""How far simplace and TensorFlow agree: random programs, a fixed corpus, and the table of both."""
