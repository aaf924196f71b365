"""Engines that are held to the reference: one file each."""
