"""Keeps and finds the terms of filters in MongoDB."""
