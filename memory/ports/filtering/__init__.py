"""The port to the terms of stored items, part of the store."""
