"""The version of this installation."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the installed package's version; "0.0.0" where it runs from a folder that is not installed."""
    try:
        return version("recollect")
    except PackageNotFoundError:
        return "0.0.0"


VERSION = installed_version()
