"""How far our results and TensorFlow's own are the same."""
