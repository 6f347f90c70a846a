"""Keeps the vector index on a Qdrant server."""
