"""5xx: precision and numbers."""
