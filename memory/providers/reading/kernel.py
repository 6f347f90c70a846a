"""Calls Linux through the C library where Python's own library lacks the call."""

import ctypes
import os
import sys

_NO_NEW_PRIVILEGES = 38
_CAPABILITY_VERSION = 0x20080522


def c_library() -> ctypes.CDLL:
    """Return the C library.

    Raises:
        OSError: this is no Linux.
    """
    if sys.platform != "linux":
        raise OSError("Linux alone has it.")
    return ctypes.CDLL(None, use_errno=True)


def checked_call(returned: int) -> int:
    """Return a call's result `returned`.

    Raises:
        OSError: the call failed.
    """
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


def drop_privileges() -> None:
    """Give up every capability for good: no program that this process starts regains one, setuid or not.

    Raises:
        OSError: the kernel does not support it.
    """
    library = c_library()
    checked_call(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    checked_call(library.capset(header, none))
