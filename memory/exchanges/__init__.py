"""Turns that another agent ran: stored, indexed and learned from as the agent's own."""
