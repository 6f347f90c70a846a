"""Finds words and sentences in texts of any language. Pure."""
