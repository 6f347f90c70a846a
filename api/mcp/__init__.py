"""Speaks MCP."""
