"""What runs in the measuring child process, beside TensorFlow."""
