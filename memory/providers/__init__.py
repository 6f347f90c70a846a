"""Implements the model ports. Each file imports its own library; `catalog` imports only the chosen ones."""
