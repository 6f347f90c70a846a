"""Reads what callers choose for one turn: the rules of options, and the choice of a model."""
