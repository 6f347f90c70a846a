"""Imports what a turn needs and a start does not."""

import sys


def import_clients() -> None:
    """Import what asks the chosen provider, ahead of the first call. An event loop calls it in a thread."""
    if "recollect.memory.providers.openai.plain_client" in sys.modules:
        from recollect.memory.providers.openai.plain_client import import_calls

        import_calls()
