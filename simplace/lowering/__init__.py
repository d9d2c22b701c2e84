"""Lowering: from a program's graph to the graph that TensorFlow's placer sees."""
