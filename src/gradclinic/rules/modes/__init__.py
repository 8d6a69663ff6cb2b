"""7xx: modes, fine-tuning, checkpoints."""
