"""Reads what README.md holds: its code blocks, its conversation, and the tables that the code fills."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.memory.providers.presets import PRESETS
from recollect.settings import Settings
from tests.project.test_env_example import as_written

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / name for name in ("README.md", "docs/http.md", "docs/models.md", "docs/agent.md", "docs/settings.md")]
GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
"""The pages that a newcomer reads, in order: later examples go on from what earlier ones have said."""
EXTRAS = {
    "anthropic": "extra `anthropic`",
    "gemini": "extra `gemini`",
    "azure": "`AZURE_OPENAI_ENDPOINT`; extra `azure` for Entra identities",
    "bedrock": "extra `bedrock`",
    "vertex": "extra `vertex`",
}


def blocks(language: str) -> list[str]:
    """Return the code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command that the README shows, and what it says the command prints."""

    command: str
    printed: str


def conversation() -> Iterator[Step]:
    """Yield the commands of all console blocks, in order. A command goes on over lines until its quotes are closed."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            size = next(count for count in range(1, len(lines) + 1) if _is_closed(lines[:count]))
            yield Step("\n".join(lines[:size]), "\n".join(lines[size:]).strip())


def _is_closed(lines: Sequence[str]) -> bool:
    try:
        shlex.split("\n".join(lines))
    except ValueError:
        return False
    return True


def generated(name: str) -> str:
    """Return the table that stands behind the comment which names it."""
    marked = re.search(rf"^<!-- {name}: generated, .*-->\n\n((?:\|.*\n)*)", GUIDE, re.MULTILINE)
    assert marked is not None, f"README.md has no table {name}"
    return marked[1]


def settings_table() -> str:
    """Return every setting: name, default, what it does."""
    rows = [
        (f"`{name.upper()}`", _code(as_written(field.get_default(call_default_factory=True))), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    return _table(("setting", "default", "what it does"), rows)


def providers_table() -> str:
    """Return every preset of PROVIDER, with its default models."""
    rows = [
        (
            f"`{name}`",
            _code(preset.key_variable or ""),
            _code(preset.base_url or "") or EXTRAS[name],
            _code(preset.chat_model or "") or "to be named",
            "the chat's",
            _code(preset.embedding_model or "") or ("to be named, else `lexical`" if preset.embeds else "`lexical`"),
        )
        for name, preset in PRESETS.items()
    ]
    return _table(("`PROVIDER`", "key", "server", "chat", "extraction", "embeddings"), rows)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in lines).replace("--- | ", "---|")
