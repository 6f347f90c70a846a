"""The parts of an open memory: the ports and the background workers that its verbs share.

Only the rooms of `memory/` reach into them. The graph, the API and applications ask `Memory` for verbs: whoever wrote
past those would write past fences, limits and the index that follows.
"""

from recollect.memory.erasure.fences import Fences
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.updater import Updater
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import Clock


@frozen
class Parts:
    """Holds what one open memory is made of; `points` makes the index follow facts and thread records."""

    store: Store
    index: VectorIndex
    embedder: Embedder
    updater: Updater
    points: IndexOutbox
    retention: Retention
    fences: Fences
    clock: Clock
