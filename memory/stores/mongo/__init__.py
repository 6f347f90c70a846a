"""Keeps the store in MongoDB, or in any server that speaks its protocol."""

from recollect.memory.stores.mongo.store import open_mongo_store

__all__ = ["open_mongo_store"]
