"""Searches the memory: from a message to ranked hits."""
