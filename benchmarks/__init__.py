"""Measurements that are run by hand, never as tests."""
