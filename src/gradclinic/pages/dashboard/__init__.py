"""Runs in a browser while they train: the figures of the report, live, and several runs beside each other."""
