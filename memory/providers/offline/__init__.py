"""The built-in offline model: learns and answers by plain rules, deterministic, no download, no network."""

from recollect.memory.providers.offline.chat import OfflineChat
from recollect.memory.providers.offline.extractor import OfflineExtractor

__all__ = ["OfflineChat", "OfflineExtractor"]
