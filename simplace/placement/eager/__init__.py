"""The devices of ops that run outside of functions, as TensorFlow's eager runtime chooses them."""
