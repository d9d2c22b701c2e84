"""What TensorFlow's own tracing says of a graph that runs on this computer's CPU."""
