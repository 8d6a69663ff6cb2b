"""2xx: the autograd graph."""
