"""Holds what is remembered: frozen values and limits, without I/O."""
