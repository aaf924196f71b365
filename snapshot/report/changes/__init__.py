"""What changed between two states of the goldens: one format, one file."""
