"""Imports early what a library imports late: behind the walls no import works."""

import encodings
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules, walk_packages

_PYTHONS_OWN = ("_strptime", "unicodedata", "stringprep", "linecache")


def preload(packages: Iterable[str]) -> None:
    """Import every module of the packages, every text encoding, and the modules that Python itself imports late."""
    for name in _PYTHONS_OWN:
        _try_import(name)
    for module in iter_modules(encodings.__path__, "encodings."):
        _try_import(module.name)
    for package in packages:
        path = import_module(package).__path__
        for module in walk_packages(path, f"{package}.", onerror=_leave_out):
            _try_import(module.name)


def _try_import(name: str) -> None:
    try:
        import_module(name)
    except ImportError:  # a module for another system, or with a missing dependency
        _leave_out(name)


def _leave_out(name: str) -> None:
    """Ignore a module that cannot be imported: the library does without it or refuses the file."""
