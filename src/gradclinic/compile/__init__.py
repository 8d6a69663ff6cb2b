"""Compiling without losing a gradient: trace, repair, compile, and prove it against eager."""
