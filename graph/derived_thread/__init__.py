"""Finds the thread of chat clients that name none and send their whole history."""
