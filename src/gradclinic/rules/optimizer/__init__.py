"""3xx: optimizer and learning rate."""
