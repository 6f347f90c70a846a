"""Reads what Azure, AWS and Google Cloud ask for beside a key, by their own names."""

from dataclasses import field
from pathlib import Path

from recollect.memory.providers.presets import Protocol
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig


@frozen
class AzureAccount:
    """How Azure OpenAI is asked. `ad_token` stands instead of a key; `RENEWED` means one of the machine's identity."""

    api_version: str
    ad_token: str | None = field(repr=False)


RENEWED = "default"
"""AZURE_OPENAI_AD_TOKEN where azure-identity gets tokens, and renews them."""


@frozen
class AwsAccount:
    """A region and its credentials; without any, AWS's client looks for them as it does everywhere."""

    region: str
    access_key_id: str | None = field(repr=False)
    secret_access_key: str | None = field(repr=False)
    session_token: str | None = field(repr=False)
    profile: str | None


@frozen
class GoogleAccount:
    """A project; without a file of credentials, Google's client looks for them as it does everywhere."""

    project: str
    location: str
    credentials_file: Path | None


Account = AzureAccount | AwsAccount | GoogleAccount | None


def account_of(protocol: Protocol, config: MemoryConfig) -> Account:
    """Return the account of a provider of this kind; None for those that ask for a key alone.

    Raises:
        ConfigurationError: a setting is missing or incomplete; the message names it.
    """
    if protocol == "azure":
        return _azure(config)
    if protocol == "bedrock":
        return _aws(config)
    if protocol == "vertex":
        return _google(config)
    return None


def _azure(config: MemoryConfig) -> AzureAccount:
    version = config.azure_openai_api_version or config.openai_api_version
    if not version:
        raise ConfigurationError(
            "AZURE_OPENAI_API_VERSION (or OPENAI_API_VERSION) is missing: the provider azure needs one, such as "
            "2024-10-21."
        )
    return AzureAccount(version, config.azure_openai_ad_token)


def _aws(config: MemoryConfig) -> AwsAccount:
    if not config.aws_region:
        raise ConfigurationError("AWS_REGION is missing: the provider bedrock needs one, such as us-east-1.")
    if bool(config.aws_access_key_id) != bool(config.aws_secret_access_key):
        raise ConfigurationError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together: set both or none.")
    return AwsAccount(
        config.aws_region,
        config.aws_access_key_id,
        config.aws_secret_access_key,
        config.aws_session_token,
        config.aws_profile,
    )


def _google(config: MemoryConfig) -> GoogleAccount:
    if not config.google_cloud_project:
        raise ConfigurationError("GOOGLE_CLOUD_PROJECT is missing: the provider vertex needs a project.")
    return GoogleAccount(
        config.google_cloud_project, config.google_cloud_location, config.google_application_credentials
    )
