"""Serves the command line."""
