"""TensorFlow's own Python tests run as scripts and under simplace, side by side: `python -m tests.tensorflow_tests`."""
