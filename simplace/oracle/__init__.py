"""What TensorFlow itself does with a program: run once in a child process, on devices that need not exist."""
