"""Serves OpenAI's Responses: responses, their items, and conversations."""
