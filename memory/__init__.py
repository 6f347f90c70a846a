"""The memory: usable without the graph and the HTTP service."""
