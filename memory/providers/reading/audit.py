"""Raises Python's own wall: an audit hook, which sees an event before the kernel does, on every system."""

import sys
from typing import Any

_FORBIDDEN = (
    *("ctypes.", "fcntl.", "ftplib.", "glob.", "http.", "mmap.", "msvcrt.", "os.", "pty.", "resource.", "shutil."),
    *("signal.", "smtplib.", "socket.", "sqlite3.", "subprocess.", "syslog.", "tempfile.", "urllib.", "winreg."),
    *("_winapi.", "open", "webbrowser."),
)


def forbid_events() -> None:
    """Forbid this process, from now on, to open, import or start anything, as far as Python sees it."""
    sys.addaudithook(_forbid)


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "import":  # The search would open files; an ImportError lets a library go on without the module.
        raise ModuleNotFoundError("While a file is being read nothing is imported.", name=str(arguments[0]))
    if event.startswith(_FORBIDDEN):
        raise PermissionError("A file that is being read may not do that.")
