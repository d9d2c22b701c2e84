"""What is placed, and what TensorFlow did with it: records that every stage reads."""
