"""Calls the agent that AGENT names in place of the built-in one, and checks all that it says."""
