"""Keeps the store in one SQLite file: the embedded default, without any server."""

from recollect.memory.stores.sqlite.store import open_sqlite_store

__all__ = ["open_sqlite_store"]
