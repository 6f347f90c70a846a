"""Erases users and threads, and keeps late writers out."""
