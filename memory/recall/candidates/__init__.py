"""Gathers the candidates of a search from the index, and chooses those that it goes on with."""
