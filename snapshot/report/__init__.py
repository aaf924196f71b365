"""Verdicts for people and for machines: one format, one file."""
