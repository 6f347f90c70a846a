"""Says how to install a provider's package."""

from importlib import import_module
from types import ModuleType

from recollect.memory.values.errors import ConfigurationError


def imported(module: str, what: str, *, extra: str) -> ModuleType:
    """Import a module that the extra `extra` brings, because `what` needs it. It reads from disk.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(f'{what} needs another package: pip install "recollect[{extra}]".') from error
