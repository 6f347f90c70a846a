"""Finds the place of a new message in its thread, in MongoDB."""
