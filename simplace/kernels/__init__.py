"""Know which ops and kernels a TensorFlow build has, without importing it."""
