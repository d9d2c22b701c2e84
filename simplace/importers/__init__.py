"""Read programs: scripts through a TensorFlow child, files as data."""
