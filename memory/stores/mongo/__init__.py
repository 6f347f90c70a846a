"""The documents in MongoDB, or in any server that speaks its language."""

from memory.stores.mongo.documents import open_mongo_documents

__all__ = ["open_mongo_documents"]
