"""Measures what searches of a user's own memory find, by cases that say what has to be found."""
