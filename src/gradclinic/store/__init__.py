"""What a run leaves on disk: one SQLite file per process, written while it trains, read at any time.

Knows facts and nothing of torch: what was written on a cluster is read on a laptop.
"""
