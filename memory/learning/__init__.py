"""Decides what a turn teaches, and takes it back."""
