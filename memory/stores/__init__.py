"""Implement the store and the vector index, embedded and on servers."""
