"""Ports about those who call the service."""
