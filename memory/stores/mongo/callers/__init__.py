"""Keeps in MongoDB what the processes know together of those who call."""
