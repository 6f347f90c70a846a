"""Identifies callers, and decides what they may reach."""
