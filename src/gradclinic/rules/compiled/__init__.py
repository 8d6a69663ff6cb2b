"""8xx: compiled training."""
