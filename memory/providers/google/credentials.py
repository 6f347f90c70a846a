"""Reads the credentials of Google Cloud from the file that GOOGLE_APPLICATION_CREDENTIALS names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from recollect.memory.providers.accounts import GoogleAccount
from recollect.memory.values.errors import ConfigurationError

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def vertex_options(account: GoogleAccount) -> dict[str, Any]:
    """Return the options of LangChain's clients for Vertex AI. It reads the file: not on the event loop.

    Raises:
        ConfigurationError: the file cannot be read, or holds no credentials.
    """
    options: dict[str, Any] = {"vertexai": True, "project": account.project, "location": account.location}
    if account.credentials_file is None:
        return options
    try:
        return {**options, "credentials": _credentials(account.credentials_file)}
    except Exception as error:
        # Google's library raises errors of its own, and those of files, of JSON and of keys that cannot be read.
        raise ConfigurationError(
            f"GOOGLE_APPLICATION_CREDENTIALS cannot be read ({type(error).__name__}); name a file of credentials of a "
            "service account, of gcloud's login, or of a workload's identity."
        ) from error


def _credentials(path: Path) -> Any:
    """Return the file's credentials, made by its kind: Google warns of its function that takes every kind."""
    info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return _makers()[info["type"]](info, scopes=_SCOPES)


def _makers() -> dict[str, Callable[..., Any]]:
    from google.auth import identity_pool
    from google.oauth2 import credentials, service_account

    # Google's libraries have no types.
    return {
        "service_account": cast("Any", service_account).Credentials.from_service_account_info,
        "authorized_user": cast("Any", credentials).Credentials.from_authorized_user_info,
        "external_account": cast("Any", identity_pool).Credentials.from_info,
    }
