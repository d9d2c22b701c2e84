"""What runs in the swept program's process, and imports TensorFlow, holds no tests."""

collect_ignore = ["program.py", "schema.py", "surface.py"]
