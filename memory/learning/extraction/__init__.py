"""Asks models for candidate facts and reads what they answer."""
