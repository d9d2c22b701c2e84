"""TensorFlow's placement rules and the reasons they leave behind."""
