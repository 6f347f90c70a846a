"""Decides whether a quote carries what a fact would store. Pure."""
