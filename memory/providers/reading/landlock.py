"""Applies Landlock with an empty rule set, which allows no file, TCP connection or signal. See landlock(7).

The kernel's three calls have no wrapper in C libraries; their numbers are equal on all processors with Landlock.
"""

import ctypes
import os

from recollect.memory.providers.reading.kernel import c_library, checked_call

_CREATE, _RESTRICT = 444, 446
_ASK_VERSION = 1
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""By Landlock's version, the bits of what can be done to files: read, write, execute, remove, …"""
_NETWORK_SINCE, _BIND_AND_CONNECT = 4, 0b11
_SCOPES_SINCE, _SOCKETS_AND_SIGNALS = 6, 0b11


class _Handled(ctypes.Structure):
    """The kernel's `landlock_ruleset_attr`: the accesses that are forbidden unless a rule allows them."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


def forbid_files() -> None:
    """Forbid this process, from now on, to open, run or remove files; call `drop_privileges` first.

    Raises:
        OSError: the kernel has no Landlock, or it is switched off.
    """
    library = c_library()
    version = checked_call(library.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))
    handled = _Handled(
        files=_FILES[min(version, max(_FILES))],
        network=_BIND_AND_CONNECT if version >= _NETWORK_SINCE else 0,
        scopes=_SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0,
    )
    size = ctypes.c_size_t(ctypes.sizeof(handled))
    rules = checked_call(library.syscall(_CREATE, ctypes.byref(handled), size, ctypes.c_uint32(0)))
    try:
        checked_call(library.syscall(_RESTRICT, rules, ctypes.c_uint32(0)))
    finally:
        os.close(rules)
