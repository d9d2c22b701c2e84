"""Records as other tools read them."""
