"""Syncs a folder of Markdown files with a user's memory."""
