"""Measures recall for persons who talk with an assistant: `python -m benchmarks.assistant_recall`.

Each question is searched for with as many hits as are counted (5 and 10), with `coverage` off and auto. The embedder is
the service's own, and the built-in one.
"""

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import uvloop

from benchmarks.assistant_talks import AssistantQuestion, AssistantTalk, read_assistant_talks
from benchmarks.recall import base_config
from benchmarks.recalling.passes import say
from benchmarks.recalling.tables import LEXICAL, short_name
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.transfer.importing import import_lines
from recollect.memory.transfer.line_source import split_lines
from recollect.memory.values.mem_config import Coverage, MemoryConfig
from recollect.memory.values.scope import Scope

AT = (5, 10)
COVERAGES: tuple[Coverage, ...] = ("off", "auto")
KINDS = ("wish", "instruction", "change", "several", "order", "answer")


@dataclass(frozen=True, slots=True)
class Found:
    """The share of a question's evidence, in [0, 1], among the hits of a search for 5 and for 10."""

    question: AssistantQuestion
    is_held_out: bool
    shares: Sequence[float]


def main() -> None:
    """Measure and print a table for each embedder."""
    talks, base = read_assistant_talks(), base_config()
    for model in dict.fromkeys((base.embedding_model or LEXICAL, LEXICAL)):
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            config = base.replace(data_dir=Path(folder), embedding_model=model)
            print(uvloop.run(_table(config, talks, short_name(model))), end="\n\n")


async def _table(config: MemoryConfig, talks: Sequence[AssistantTalk], name: str) -> str:
    async with open_memory(config) as memory:
        await _take_in(memory, talks)
        found = {coverage: await ask(memory, talks, coverage) for coverage in COVERAGES}
    return table(found, name)


async def _take_in(memory: Memory, talks: Sequence[AssistantTalk]) -> None:
    for talk in talks:
        result = await import_lines(memory, split_lines(_json_lines(talk)))
        if result.imported != len(talk.messages):
            raise RuntimeError(f"Of {talk.id}, {len(result.failed)} lines failed.")
        say(f"{talk.id}: {result.imported} messages imported")


async def _json_lines(talk: AssistantTalk) -> AsyncIterator[bytes]:
    for said in talk.messages:
        yield json.dumps(said.line(talk.id)).encode() + b"\n"


async def ask(memory: Memory, talks: Sequence[AssistantTalk], coverage: Coverage) -> list[Found]:
    """Search for every question, once for each number of hits."""
    found = list[Found]()
    for talk in talks:
        for question in talk.questions:
            shares = list[float]()
            for top_k in AT:
                options = RecallOptions(top_k=top_k, kinds=("episode",), coverage=coverage)
                hits = (await memory.recall.find(Scope(talk.id), question.text, options, now=talk.asked_at)).hits
                given = {hit.entry.message_id for hit in hits}
                shares.append(fmean(label in given for label in question.evidence))
            found.append(Found(question, talk.is_held_out, shares))
    return found


def table(found: Mapping[str, Sequence[Found]], name: str) -> str:
    """Return the recall of each half, and of each kind of question in both, in percent, as a Markdown table."""
    columns = [f"R@{count}, coverage {coverage}" for coverage in found for count in AT]
    lines = [f"| {name} | questions | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    groups: dict[str, Callable[[Found], bool]] = {
        "open talks": lambda one: not one.is_held_out,
        "held-out talks": lambda one: one.is_held_out,
        **{kind: lambda one, kind=kind: one.question.kind == kind for kind in KINDS},
    }
    for group, is_in in groups.items():
        rows = [[one.shares for one in searched if is_in(one)] for searched in found.values()]
        cells = [f"{100 * fmean(shares[place] for shares in row):.1f}" for row in rows for place in range(len(AT))]
        lines.append(f"| {group} | {len(rows[0])} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
