"""What pytest is not to import."""

collect_ignore = ["prelude.py"]  # it imports TensorFlow; converted notebooks run it
