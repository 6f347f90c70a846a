"""Names the collections of a folder that this process has open: the engine opens none twice."""

import asyncio
from dataclasses import field

from recollect.memory.stores.edge.running import Running
from recollect.memory.values.frozen import frozen


@frozen
class OpenCollections:
    """Holds the `names` of the open ones, shared by the indexes of a folder.

    Whoever opens a collection holds `opening`: an index that looks into others' collections would else have it open.
    """

    names: set[str] = field(default_factory=set[str])
    running: Running = field(default_factory=Running)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
