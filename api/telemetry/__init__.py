"""Counts, traces and logs what the service does."""
