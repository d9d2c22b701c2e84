"""What differs between two results of ours."""
