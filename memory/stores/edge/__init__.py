"""Keeps the vector index in Qdrant's engine, in this process."""
