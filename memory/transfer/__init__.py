"""Exports and imports what is remembered."""
