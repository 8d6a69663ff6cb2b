"""The first steps under a magnifying glass: every torch function, what it made and from what."""
