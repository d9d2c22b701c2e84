"""The ops and kernels of a TensorFlow build, read without importing it."""
