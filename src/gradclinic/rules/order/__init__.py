"""1xx: the order of the loop."""
