"""Applies seccomp through libseccomp, which knows each processor's calls: the kernel refuses calls not listed here."""

import ctypes
import errno
import sys

from recollect.memory.providers.reading.kernel import checked_call

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_UP_TO, _MASKED = 3, 7
"""How libseccomp compares an argument: it is at most so much; some of its bits are so."""
_EXECUTABLE = 4
_FREE = (
    *("read", "readv", "pread64", "lseek", "_llseek", "close", "fstat", "fstat64"),
    *("brk", "munmap", "mremap", "madvise", "futex", "futex_time64", "sched_yield", "restart_syscall"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack", "exit", "exit_group"),
    *("getrandom", "clock_gettime", "clock_gettime64", "gettimeofday", "time", "getpid", "gettid"),
)
"""Calls that touch only what is open, and this process's own memory, signals and end."""


class _Comparison(ctypes.Structure):
    """libseccomp's `scmp_arg_cmp`."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


_LIMITED = {
    "write": _Comparison(0, _UP_TO, 2, 0),  # standard output and error
    "mmap": _Comparison(2, _MASKED, _EXECUTABLE, 0),  # memory that cannot be run
    "mmap2": _Comparison(2, _MASKED, _EXECUTABLE, 0),
    "mprotect": _Comparison(2, _MASKED, _EXECUTABLE, 0),
}


def _library() -> ctypes.CDLL | None:
    """Open libseccomp; return None where it is missing."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    several = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    library.seccomp_rule_add_array.argtypes = several
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    return library


_LIBRARY = _library()
"""It is opened when this is imported: behind the other walls no file can be."""


def allow_listed_calls() -> None:
    """Have the kernel refuse this process, from now on, every call that is not listed.

    Raises:
        OSError: libseccomp is missing, or the kernel takes no filter.
    """
    if _LIBRARY is None:
        raise OSError("There is no libseccomp.")
    rules = _LIBRARY.seccomp_init(_REFUSE)
    if not rules:
        raise OSError("libseccomp does not know this processor.")
    for name in _FREE:
        _allow(_LIBRARY, rules, name)
    for name, comparison in _LIMITED.items():
        _allow(_LIBRARY, rules, name, comparison)
    checked_call(_LIBRARY.seccomp_load(rules))


def _allow(library: ctypes.CDLL, rules: int, name: str, comparison: _Comparison | None = None) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:  # this processor has no such call
        return
    comparisons = (_Comparison * 1)(comparison) if comparison else None
    checked_call(library.seccomp_rule_add_array(rules, _ALLOW, number, 1 if comparison else 0, comparisons))
