"""Moves a process into Linux namespaces of its own for network, IPC and users.

`os.unshare` would do the same, but needs Python 3.12. Containers mostly refuse the call.
"""

from recollect.memory.providers.reading.kernel import c_library, checked_call

_USER, _NETWORK, _IPC = 0x10000000, 0x40000000, 0x08000000


def leave_network() -> None:
    """Move this process into empty namespaces, from which it reaches no address, not even this machine's own.

    Raises:
        OSError: the kernel or the container does not allow it.
    """
    checked_call(c_library().unshare(_USER | _NETWORK | _IPC))
