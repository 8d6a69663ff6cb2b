"""6xx: gradient and signal health."""
