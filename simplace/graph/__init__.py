"""Graphs: nodes and edges as TensorFlow keeps them, before anything is placed."""
