"""Finds hits without ranking: a period's messages, the newest memories, and what has the query's words."""
