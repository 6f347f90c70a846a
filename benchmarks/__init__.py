"""Measurements of the running service and its stores."""
