"""Says whether several processes can share what a configuration opens."""

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig


def check_shared(config: MemoryConfig, wanted: str) -> None:
    """Check that documents and index are on servers; `wanted` names what needs that.

    Raises:
        ConfigurationError: one of them is embedded, which one process at a time has open.
    """
    if config.mongodb_url is None or config.qdrant_url is None:
        raise ConfigurationError(
            f"{wanted} needs documents and index that processes share: set MONGODB_URL and QDRANT_URL. "
            "What is kept in DATA_DIR is one process's own."
        )
