"""Stores a user's own files and texts as passages and makes them findable."""
