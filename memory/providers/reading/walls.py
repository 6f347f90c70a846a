"""Raises walls around the process that reads a file: the kernel's, where this machine has them, and Python's own."""

from collections.abc import Callable, Iterable, Mapping

from recollect.memory.providers.reading.audit import forbid_events
from recollect.memory.providers.reading.kernel import drop_privileges
from recollect.memory.providers.reading.landlock import forbid_files
from recollect.memory.providers.reading.limits import close_limits
from recollect.memory.providers.reading.namespaces import leave_network
from recollect.memory.providers.reading.seccomp import allow_listed_calls

WALLS: Mapping[str, Callable[[], None]] = {
    "namespaces": leave_network,
    "privileges": drop_privileges,
    "landlock": forbid_files,
    "rlimits": close_limits,
    "seccomp": allow_listed_calls,
    "audit": forbid_events,
}
"""They are raised in this order: new namespaces bring privileges that are dropped next, Landlock needs them dropped,
and behind seccomp no other wall of the kernel's can be raised."""


def confine(names: Iterable[str] = WALLS) -> list[str]:
    """Raise the walls of these names, and return those that are in force: a machine may lack some.

    From then on the process uses only files and modules that it has open and imported, and writes to standard output.
    """
    wanted, raised = set(names), list[str]()
    for name, build in WALLS.items():
        if name not in wanted:
            continue
        try:
            build()
        except (OSError, AttributeError):  # the kernel refuses, or the C library does not know the call
            continue
        raised.append(name)
    return raised
