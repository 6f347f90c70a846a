"""Chooses, opens and closes the backends that a configuration names."""
