"""Models that a program gives as objects."""
