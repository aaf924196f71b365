"""One verb, one file."""
