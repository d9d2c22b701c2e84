"""Why each node is where it is."""
