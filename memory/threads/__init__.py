"""Keeps a thread's window, summary and archive."""
