"""The built-in offline model: learns and answers by plain rules, deterministic, no download, no network."""

from memory.providers.offline.chat import OfflineChat
from memory.providers.offline.extractor import OfflineExtractor

__all__ = ["OfflineChat", "OfflineExtractor"]
