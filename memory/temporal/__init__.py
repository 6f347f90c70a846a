"""Reads the times that a text names. Pure."""
