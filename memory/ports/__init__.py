"""Declares what the memory asks of the outside: small Protocols and their values."""
