"""Holds conversations at the terminal."""
