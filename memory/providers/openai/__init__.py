"""Speaks to OpenAI and every server with its protocol."""
