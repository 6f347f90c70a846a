"""Speaks OpenAI's protocol."""
