"""9xx: training on several ranks."""
