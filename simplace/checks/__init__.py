"""A user's requirements on a result, and whether they hold."""
