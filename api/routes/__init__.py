"""Translates HTTP requests into the memory's and the graph's verbs."""
