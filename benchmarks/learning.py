"""Measures learning from 200 turns with an imperfect model: `python -m benchmarks.learning`, about a minute.

The service and the model are real processes on loopback (`benchmarks.learning_model` says how the model errs); one user
says the 200 lines of `benchmarks.learning_talk` in one thread. It prints a Markdown table, once with LEARN_EVERY=1 and
once with 4. A missed target is printed and does not fail the run.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.connection import Connection
from benchmarks.learning_talk import Talk, Truth, script
from benchmarks.processes import Server, learning_model, service
from benchmarks.report import Row, conclusion, machine, table, write

RESULTS = Path(__file__).parent / "results" / "learning.json"
LEARN_EVERY = (1, 4)
SETTLED_WITHIN_SECONDS = 120.0
USER, THREAD = "ada", "t1"

Json = dict[str, Any]


@dataclass(slots=True)
class Learned:
    """The result of the talk. `facts` hold at its end, `waiting` are proposals that wait for approval.

    `updates` are by turn, `calls` are the model's.
    """

    facts: Sequence[Json] = ()
    waiting: Sequence[Json] = ()
    updates: list[Json] = field(default_factory=list[Json])
    calls: Sequence[Json] = ()
    seconds: float = 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Talk, count, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description="What is learned.")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    parser.add_argument("--unproven", default="review", help="UNPROVEN of the service: review, refuse or allow")
    given = parser.parse_args(arguments)
    talk, rows, figures = script(), list[Row](), dict[str, Any]()
    ran_on = machine()
    for every in LEARN_EVERY:
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, learning_model() as model:
            with service(Path(folder), _settings(model, every, given.unproven)) as running:
                learned = uvloop.run(_learn(talk, running, model))
            found, figures[f"learn every {every}"] = score(talk, learned)
        rows += [Row(f"LEARN_EVERY={every}: {row.what}", row.target, row.figure, row.passed) for row in found]
    print(table(rows))
    print(f"\n{conclusion(rows)}")
    write(given.json, rows=rows, figures=figures, ran_on=ran_on)


def _settings(model: Server, every: int, unproven: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": model.model_url,
        "OPENAI_API_KEY": "none",
        "CHAT_MODEL": "fake-chat",
        "EMBEDDING_MODEL": "lexical",
        "SUMMARY_EVERY": "0",
        "AGENT_TOOLS": "false",
        "UNPROVEN": unproven,
        "LEARN_EVERY": str(every),
        "LEARN_IDLE_SECONDS": "0" if every == 1 else "1",
    }


async def _learn(talk: Talk, running: Server, model: Server) -> Learned:
    """Say everything, wait until all of it is learned from, and read back the facts."""
    learned = Learned()
    asking, counting = await Connection.to(running.port), await Connection.to(model.port)
    await counting.get("/calls")
    begun = time.perf_counter()
    ids = [f"turn-{number}" for number in range(len(talk.lines))]
    for turn_id, line in zip(ids, talk.lines, strict=True):
        body = {"user_id": USER, "thread_id": THREAD, "turn_id": turn_id, "message": line.text}
        status, answer = await asking.post("/api/agent", body)
        if status != 200:
            raise RuntimeError(f"A turn failed with {status}: {answer}")
    for turn_id in ids:
        learned.updates.append(await _settled(asking, turn_id, until=begun + SETTLED_WITHIN_SECONDS))
    learned.seconds = time.perf_counter() - begun
    learned.facts = await _facts(asking)
    learned.waiting = await _facts(asking, status="proposed")
    _, learned.calls = await counting.get("/calls")
    asking.close()
    counting.close()
    return learned


async def _settled(asking: Connection, turn_id: str, *, until: float) -> Json:
    while True:
        _, turn = await asking.get(f"/api/turns/{turn_id}?user_id={USER}")
        update: Json = turn["memory"]["update"]
        if update["status"] != "pending" or time.perf_counter() > until:
            return update


async def _facts(asking: Connection, *, status: str = "active") -> list[Json]:
    facts: list[Json] = []
    cursor = ""
    while True:
        _, page = await asking.get(f"/api/users/{USER}/facts?limit=200&status={status}{cursor}")
        facts += page["items"]
        if page["next_cursor"] is None:
            return facts
        cursor = f"&cursor={page['next_cursor']}"


def score(talk: Talk, learned: Learned) -> tuple[list[Row], Json]:
    """Compare the facts with the truths: each fact is one of them, a duplicate, or junk."""
    kept = Counter[str]()
    junk: list[Json] = []
    for fact in learned.facts:
        truth = _truth_of(fact, talk.truths)
        if truth is None:
            junk.append({"key": fact["key"], "value": fact["value"], "statement": fact["statement"]})
        else:
            kept[truth.key] += 1
    planted = {_plain(line.planted[2]) for line in talk.lines if line.planted is not None}
    believed = [fact for fact in junk if _plain(fact["statement"]) in planted]
    lost = [fact["key"] for fact in learned.waiting if _truth_of(fact, talk.truths)]
    duplicates = sum(count - 1 for count in kept.values())
    wrong = _wrong_deletes(talk, learned.updates)
    turns = len(talk.lines)
    calls = Counter(str(call["kind"]) for call in learned.calls)
    tokens = {
        kind: sum(call["tokens"] + call["answer_tokens"] for call in learned.calls if call["kind"] == kind)
        for kind in calls
    }
    refused = sum(len(update["refused"]) for update in learned.updates)
    ended = Counter(str(update["status"]) for update in learned.updates)
    rows = [
        Row("facts kept", f"{len(talk.truths)}", str(len(kept)), len(kept) == len(talk.truths)),
        Row("duplicates", "0", str(duplicates), duplicates == 0),
        Row("junk", "0", str(len(junk)), not junk),
        Row(f"planted facts believed, of {len(planted)}", "0", str(len(believed)), not believed),
        Row("true facts that wait for their owner", "0", str(len(lost)), not lost),
        Row("facts that wait for their owner", "", str(len(learned.waiting))),
        Row("wrong deletes", "0", str(len(wrong)), not wrong),
        Row("decisions refused", "", str(refused)),
        Row("updates", "", ", ".join(f"{count} {status}" for status, count in sorted(ended.items()))),
        Row(
            "model calls a turn, chat + extraction",
            "",
            f"{calls['chat'] / turns:.2f} + {calls['extraction'] / turns:.2f}",
        ),
        Row(
            "tokens a turn, chat + extraction",
            "",
            f"{tokens.get('chat', 0) / turns:.0f} + {tokens.get('extraction', 0) / turns:.0f}",
        ),
    ]
    missing = sorted(talk.truths.keys() - kept.keys())
    return rows, {
        "missing": missing,
        "junk": junk,
        "planted": believed,
        "waiting": [(fact["key"], fact["value"], fact["statement"]) for fact in learned.waiting],
        "wrong_deletes": wrong,
        "calls": calls,
        "tokens": tokens,
        "seconds": learned.seconds,
    }


def _truth_of(fact: Json, truths: Mapping[str, Truth]) -> Truth | None:
    """Return the truth that a fact tells: by key and value, or, under any key or none, by statement."""
    own = truths.get(fact["key"] or "")
    if own is not None:
        return own if fact["value"].casefold() == own.value.casefold() else None
    said = _plain(fact["statement"])
    return next((truth for truth in truths.values() if _plain(truth.statement) == said), None)


def _plain(statement: str) -> str:
    return " ".join(statement.casefold().rstrip(".").split())


def _wrong_deletes(talk: Talk, updates: Sequence[Json]) -> list[Json]:
    """Return deletes of facts that nobody ended, and changes that replace one fact by another."""
    changes = [change for update in updates for change in update["changes"]]
    keys = {change["fact_id"]: change["key"] for change in changes if change["decision"] in {"add", "update"}}
    wrong = [
        change
        for change in changes
        if change["decision"] == "delete" and keys.get(change["fact_id"], change["key"]) not in talk.ended
    ]
    return wrong + [change for change in changes if change["decision"] == "update" and change["key"] is None]


if __name__ == "__main__":
    main()
