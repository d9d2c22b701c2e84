"""TensorFlow observed in the user's own process, on its real devices; nothing that runs there is changed."""
