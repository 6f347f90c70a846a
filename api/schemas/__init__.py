"""Declares what requests may say and what routes answer."""
