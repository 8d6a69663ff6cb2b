"""Experiments on a case: each asks one question and hands back frozen facts for the rules."""
