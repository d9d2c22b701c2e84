"""Programs that place well and then fail, and ones that do not: TensorFlow's own outcome beside what is predicted."""
