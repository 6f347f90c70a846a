"""Reads what other programs, files and databases hold, as lines of an import."""
