"""Reads from a configuration which provider each role asks: chat, extraction, embeddings.

A key goes only to its own provider: a role that names another one than the chat's never gets the chat's key.
"""

from dataclasses import replace

from recollect.memory.providers.accounts import Account, AzureAccount, account_of
from recollect.memory.providers.endpoint import NO_KEY, Endpoint
from recollect.memory.providers.presets import PRESETS, Preset, Protocol, provider_name
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig

_OWN_ADDRESSES: dict[Protocol, str] = {
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "bedrock": "",
    "vertex": "",
}
_CREDENTIALS: dict[Protocol, str] = {
    "azure": "AZURE_OPENAI_AD_TOKEN",
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex": "GOOGLE_APPLICATION_CREDENTIALS",
}
"""The settings that stand for a key where there is none."""


@frozen
class _RoleSettings:
    """The settings of one role, and their names for errors."""

    provider: str | None
    base_url: str | None
    api_key: str | None
    role: str
    address: str | None = None

    @property
    def provider_setting(self) -> str:
        return f"{self.role}PROVIDER"

    @property
    def address_setting(self) -> str:
        return self.address or (f"{self.role}BASE_URL" if self.role else "OPENAI_BASE_URL")

    @property
    def key_setting(self) -> str:
        return f"{self.role}API_KEY"


def endpoint(config: MemoryConfig) -> Endpoint | None:
    """Return the chat's provider, or None for the built-in offline models (no provider, key or base URL).

    Raises:
        ConfigurationError: an unknown provider, a base URL that is none, or a missing key or account.
    """
    if not config.names_provider:
        return None
    # The chat's key is its provider's own: settings choose it by the provider.
    asked = _RoleSettings(config.provider or "openai", config.base_url, None, "")
    return _named(config, asked, config.api_key)


def extraction_endpoint(config: MemoryConfig) -> Endpoint | None:
    """Return the provider that extracts and summarises: its own, else the chat's.

    Raises:
        ConfigurationError: as `endpoint`.
    """
    asked = _RoleSettings(
        config.extraction_provider, config.extraction_base_url, config.extraction_api_key, "EXTRACTION_"
    )
    return _own(config, asked) or endpoint(config)


def extracts_as_given(config: MemoryConfig) -> bool:
    """Tell whether the chat model that a program gave extracts too: no setting names another one for that."""
    own = (config.extraction_provider, config.extraction_base_url, config.extraction_api_key, config.extraction_model)
    return config.given_chat is not None and not any(own)


def embedding_endpoint(config: MemoryConfig) -> Endpoint | None:
    """Return the provider that embeds: its own, else the chat's (whether that one embeds is told by its preset).

    Raises:
        ConfigurationError: as `endpoint`, or EMBEDDING_PROVIDER names one without embeddings.
    """
    asked = _RoleSettings(config.embedding_provider, config.embedding_base_url, config.embedding_api_key, "EMBEDDING_")
    own = _own(config, asked)
    if own is not None and config.embedding_provider and own.protocol == "anthropic":
        raise ConfigurationError(
            "EMBEDDING_PROVIDER=anthropic cannot be: Anthropic has no embeddings. Name another provider, or unset it."
        )
    return own or endpoint(config)


def _own(config: MemoryConfig, asked: _RoleSettings) -> Endpoint | None:
    """Return the provider that a role's own settings name; None where they name none."""
    if not (asked.provider or asked.base_url or asked.api_key):
        return None
    chat = endpoint(config)
    if asked.provider is None and asked.base_url is None and chat is None:
        asked = replace(asked, provider="openai")
    if chat is not None and _is_the_chats(config, chat, asked):
        return _with_key(chat, asked)
    if asked.provider is None:
        base_url = _address(asked, "")
        known = next((name for name, item in PRESETS.items() if item.base_url == base_url), None)
        if known is None:
            return Endpoint(
                "", base_url, asked.key_setting, asked.api_key or NO_KEY, address_setting=asked.address_setting
            )
        asked = replace(asked, provider=known)
    name = provider_name(asked.provider or "", asked.provider_setting)
    return _named(config, asked, asked.api_key or dict(config.own_keys).get(name))


def _is_the_chats(config: MemoryConfig, chat: Endpoint, asked: _RoleSettings) -> bool:
    """Tell whether a role's settings mean the server that the chat asks."""
    if asked.base_url is not None:
        return asked.provider is None and chat.protocol == "openai" and _address(asked, "") == chat.base_url
    if asked.provider is None:
        return True
    # Without PROVIDER, OPENAI_BASE_URL is a server of its own, and OPENAI_API_KEY its key: it is not "openai".
    is_named = config.provider is not None or chat.is_openai
    return is_named and provider_name(asked.provider, asked.provider_setting) == chat.provider


def _with_key(chat: Endpoint, asked: _RoleSettings) -> Endpoint:
    """Return the chat's provider, asked with the role's own key where it has one."""
    if asked.api_key is None:
        return chat
    _check_key(chat.protocol, asked)
    account = _without_token(chat.account)
    return replace(chat, api_key=asked.api_key, key_setting=asked.key_setting, account=account)


def _named(config: MemoryConfig, asked: _RoleSettings, key: str | None) -> Endpoint:
    """Return the provider that `asked` names, with its key or one that stands for none."""
    name = provider_name(asked.provider or "", asked.provider_setting)
    chosen = PRESETS[name]
    _check_key(chosen.protocol, asked)
    account = account_of(chosen.protocol, config)
    if asked.api_key:
        account = _without_token(account)
    own_address = _own_address(chosen, config, asked)
    is_azure = chosen.protocol == "azure"
    if is_azure and asked.base_url is None:
        asked = replace(asked, address="AZURE_OPENAI_ENDPOINT")
    base_url = _address(asked, own_address)
    has_token = isinstance(account, AzureAccount) and account.ad_token is not None
    needs_key = chosen.key_variable is not None and chosen.protocol != "bedrock"
    if needs_key and not (key or has_token) and (is_azure or base_url == own_address):
        raise _missing_key(name, chosen.key_variable or "", asked)
    key_setting = asked.key_setting if asked.api_key else _CREDENTIALS.get(chosen.protocol) if not key else None
    return Endpoint(
        provider=name,
        base_url=base_url,
        key_setting=key_setting or chosen.key_variable or "OPENAI_API_KEY",
        api_key=key or NO_KEY,
        protocol=chosen.protocol,
        address_setting=asked.address_setting,
        account=account,
    )


def _own_address(chosen: Preset, config: MemoryConfig, asked: _RoleSettings) -> str:
    """Return the provider's own address; "" where its client knows it.

    Raises:
        ConfigurationError: Azure is chosen, and nothing says where the resource is.
    """
    if chosen.protocol != "azure":
        return chosen.base_url or _OWN_ADDRESSES[chosen.protocol]
    if config.azure_openai_endpoint is None and asked.base_url is None:
        raise ConfigurationError(
            "AZURE_OPENAI_ENDPOINT is missing: the provider azure needs the resource's address, such as "
            "https://NAME.openai.azure.com."
        )
    return config.azure_openai_endpoint or ""


def _address(asked: _RoleSettings, own: str) -> str:
    """Return the role's base URL, else `own`, without white space and slashes at its ends.

    Raises:
        ConfigurationError: it is no URL.
    """
    base_url = (asked.base_url or own).strip().rstrip("/")
    if base_url and not base_url.startswith(("http://", "https://")):
        raise ConfigurationError(f"{asked.address_setting} must start with http:// or https://.")
    return base_url


def _without_token(account: Account) -> Account:
    """Return the account without its token, in whose place a role has a key."""
    return replace(account, ad_token=None) if isinstance(account, AzureAccount) else account


def _check_key(protocol: Protocol, asked: _RoleSettings) -> None:
    if protocol == "vertex" and asked.api_key:
        raise ConfigurationError(
            f"{asked.key_setting} cannot be used with vertex, which takes Google's credentials: unset it, and see "
            "GOOGLE_APPLICATION_CREDENTIALS."
        )


def _missing_key(name: str, variable: str, asked: _RoleSettings) -> ConfigurationError:
    settings = [*([asked.key_setting] if asked.role else []), variable]
    if name == "azure":
        settings.append("AZURE_OPENAI_AD_TOKEN")
    return ConfigurationError(f"{' or '.join(settings)} is missing: the provider {name} needs a key.")
