"""Measures what a run's numbers are, step by step, at a cost of a few percent."""
