"""Keeps the records of the whole database, of each of which there is one."""
