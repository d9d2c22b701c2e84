"""The modules that run inside the child process and may import TensorFlow; the parent never imports them."""
