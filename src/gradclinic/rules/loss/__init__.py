"""4xx: the loss."""
