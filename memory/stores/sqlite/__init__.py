"""The documents in one SQLite file: the embedded default, without any server."""

from memory.stores.sqlite.documents import open_sqlite_documents

__all__ = ["open_sqlite_documents"]
