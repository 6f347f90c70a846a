"""Reads PDF, DOCX and HTML in a process of its own, because such files may be made to do harm."""
