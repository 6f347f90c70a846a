"""Keeps the vector index equal to the store."""
