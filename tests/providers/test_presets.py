import subprocess
import sys

import pytest

from recollect.memory.providers.catalog import open_chat_model, open_extraction_chats
from recollect.memory.providers.endpoint import (
    OPENAI_BASE_URL,
    chat_model_name,
    embedding_model_name,
    extraction_model_names,
)
from recollect.memory.providers.presets import PRESETS, preset
from recollect.memory.providers.roles import endpoint
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig

REMOTE = [name for name, item in PRESETS.items() if item.base_url and item.key_variable]
LOCAL = [name for name, item in PRESETS.items() if item.base_url and item.key_variable is None]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_an_address_and_a_variable(name: str) -> None:
    item = preset(name.upper())
    if item.base_url is not None:
        assert item.base_url.startswith("http://127.0.0.1" if item.key_variable is None else "https://")
        assert not item.base_url.endswith("/")
    assert item.key_variable is None or item.key_variable.isupper()


def test_the_brief_s_providers_are_there() -> None:
    named = "openai groq together openrouter mistral deepinfra fireworks ollama vllm anthropic gemini"
    assert set(named.split()) <= set(PRESETS)


def test_an_unknown_provider_is_told_the_names() -> None:
    with pytest.raises(ConfigurationError, match=r"PROVIDER.*groq.*ollama"):
        preset("grok-ai")


@pytest.mark.parametrize("name", REMOTE)
def test_a_preset_needs_its_own_key(name: str) -> None:
    variable = PRESETS[name].key_variable or ""
    with pytest.raises(ConfigurationError, match=variable):
        endpoint(MemoryConfig(provider=name))
    found = endpoint(MemoryConfig(provider=name, api_key="k"))
    assert found is not None
    assert (found.base_url, found.key_setting, found.api_key) == (PRESETS[name].base_url, variable, "k")


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_server_gets_a_placeholder_key(name: str) -> None:
    found = endpoint(MemoryConfig(provider=name))
    assert found is not None
    assert found.api_key
    assert found.base_url == PRESETS[name].base_url


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_native_providers_need_their_key_too(name: str) -> None:
    with pytest.raises(ConfigurationError, match=PRESETS[name].key_variable or ""):
        endpoint(MemoryConfig(provider=name))


def test_neither_key_nor_address_means_the_built_in_models() -> None:
    assert endpoint(MemoryConfig()) is None
    assert embedding_model_name(MemoryConfig(), None) == "lexical"


def test_a_key_alone_means_openai_with_its_defaults() -> None:
    config = MemoryConfig(api_key="k")
    found = endpoint(config)
    assert found is not None
    assert found.is_openai
    assert found.base_url == OPENAI_BASE_URL
    assert chat_model_name(config, found) == "gpt-4.1-mini"
    assert extraction_model_names(config, found) == (["gpt-4.1-mini"], "CHAT_MODEL")
    assert embedding_model_name(config, found) == "text-embedding-3-small"


def test_a_foreign_address_needs_a_chat_model_and_embeds_lexically() -> None:
    config = MemoryConfig(base_url="http://127.0.0.1:11434/v1/")
    found = endpoint(config)
    assert found is not None
    assert not found.is_openai
    assert found.base_url == "http://127.0.0.1:11434/v1"
    assert embedding_model_name(config, found) == "lexical"
    with pytest.raises(ConfigurationError, match="CHAT_MODEL"):
        chat_model_name(config, found)
    with pytest.raises(ConfigurationError, match="CHAT_MODEL"):
        extraction_model_names(config, found)
    assert extraction_model_names(config.replace(extraction_model="e"), found) == (["e"], "EXTRACTION_MODEL")
    several = config.replace(extraction_model=" e, f,,e ,")
    assert extraction_model_names(several, found) == (["e", "f"], "EXTRACTION_MODEL")


def test_a_remote_embedding_model_needs_a_server() -> None:
    anthropic = MemoryConfig(provider="anthropic", api_key="k", embedding_model="voyage-3")
    for config in (MemoryConfig(embedding_model="text-embedding-3-small"), anthropic):
        with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL"):
            embedding_model_name(config, endpoint(config))
    assert embedding_model_name(anthropic.replace(embedding_model=None), endpoint(anthropic)) == "lexical"


def test_an_address_must_be_one() -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL"):
        endpoint(MemoryConfig(base_url="localhost:11434"))


def test_the_key_is_in_no_repr() -> None:
    assert "sesame" not in repr(endpoint(MemoryConfig(api_key="sesame")))


def test_the_table_loads_no_library() -> None:
    code = (
        "import sys, memory.providers.catalog, memory.providers.presets, memory.providers.probe\n"
        "print(sorted({'openai','langchain_core','langchain_openai','numpy','httpx','fastembed'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_without_settings_the_offline_model_answers() -> None:
    async with open_chat_model(MemoryConfig()) as chat, open_extraction_chats(MemoryConfig()) as extraction:
        assert "offline" in chat.name
        assert "offline" in extraction.first.name
        assert extraction.open_named is None
