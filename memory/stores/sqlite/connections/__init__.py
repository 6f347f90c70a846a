"""The connections to the SQLite file: writes in groups, and short reads."""
