"""Measures recall on LoCoMo: `python -m benchmarks.recall` (`make bench-recall`).

LOCOMO_PATH names LoCoMo's `locomo10.json`. The embedder is the service's own (EMBEDDING_MODEL, EMBEDDING_MODEL_PATH;
with the path alone, all-MiniLM-L6-v2), and the built-in one. It prints a Markdown table beside the published figures;
`--folds` adds figures with weights chosen on other conversations, `--scale` the time of a search as memories grow.
`--quantization` measures short vectors beside whole ones, in place of all that. A missed target is printed and does not
fail the run.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.recalling.folds import cross_validated
from benchmarks.recalling.locomo import Talk, read_locomo
from benchmarks.recalling.measures import Outcome, figures
from benchmarks.recalling.passes import add_facts, ask, say, take_in
from benchmarks.recalling.plot import plot
from benchmarks.recalling.quantized import Quantized, kept_row, quantized
from benchmarks.recalling.scale import FULL, QUICK, Scale, scale
from benchmarks.recalling.tables import (
    FACTS,
    LEXICAL,
    Found,
    recall_table,
    scope_table,
    session_table,
    short_name,
    targets,
)
from benchmarks.report import Row, conclusion, machine, table, write
from recollect.memory.opening.opening import open_memory
from recollect.memory.stores.qdrant.layout import Quantization
from recollect.memory.values.mem_config import MemoryConfig
from recollect.settings import load_settings

RESULTS = Path(__file__).parent / "results" / "recall.json"
MINILM = "fastembed:sentence-transformers/all-MiniLM-L6-v2"
NO_SWEEP_SECONDS = 86_400.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, write JSON and PNG."""
    given = _arguments(arguments)
    ran_on, base = machine(), base_config()
    rows, raw = list[Row](), dict[str, Any]()
    if given.quantization:
        shortened = uvloop.run(_quantized(read_locomo(given.locomo), base, given.quantization))
        print(recall_table(Found(passes=shortened.passes)), end="\n\n")
        rows += [kept_row(doing, share) for doing, share in shortened.kept.items()]
        raw["quantization"] = {name: figures(outcomes).as_json() for name, outcomes in shortened.passes.items()}
    elif given.locomo is not None:
        talks = read_locomo(given.locomo)
        found = uvloop.run(_measure(talks, base, with_folds=given.folds))
        print(recall_table(found), end="\n\n")
        print(session_table(found), end="\n\n")
        print(scope_table(found), end="\n\n")
        rows += targets(found)
        raw |= _raw(found)
        plot(given.json.with_suffix(".png"), found.passes)
    if given.scale and not given.quantization:
        sizes: Scale = QUICK if given.quick else FULL
        measured = uvloop.run(_scale(base, sizes))
        rows += measured[0]
        raw["scale"] = measured[1]
    print(table(rows))
    print(f"\n{conclusion(rows)}")
    write(given.json, rows=rows, figures=raw, ran_on=ran_on)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description="What recall finds on LoCoMo.")
    named = os.environ.get("LOCOMO_PATH")
    parser.add_argument(
        "--locomo", type=Path, default=Path(named) if named else None, help="locomo10.json; default: LOCOMO_PATH"
    )
    parser.add_argument("--folds", action="store_true", help="also with weights chosen on other conversations")
    parser.add_argument("--scale", action="store_true", help="also how long a search takes as memories grow")
    parser.add_argument(
        "--quantization",
        nargs="+",
        choices=("scalar", "binary"),
        default=[],
        help="with vectors shortened as QDRANT_QUANTIZATION shortens them, and with whole ones, in place of all else",
    )
    parser.add_argument("--quick", action="store_true", help="a small --scale, whose figures mean little")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go; the plot beside them")
    given = parser.parse_args(arguments)
    if given.locomo is None and (given.quantization or not given.scale):
        parser.error("LOCOMO_PATH is not set: name LoCoMo's locomo10.json, or measure --scale alone.")
    return given


def base_config() -> MemoryConfig:
    """Return the service's own configuration, with embedded stores, in a folder that is set later."""
    # A sweep would repair turns during their import, and its embedding would disturb the measured times.
    config = load_settings().memory().replace(mongodb_url=None, qdrant_url=None, sweep_seconds=NO_SWEEP_SECONDS)
    if config.embedding_model is None and config.embedding_model_path is not None:
        return config.replace(embedding_model=MINILM)
    return config


async def _measure(talks: Sequence[Talk], base: MemoryConfig, *, with_folds: bool) -> Found:
    found = Found()
    for model in _embedders(base):
        with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            async with open_memory(base.replace(data_dir=Path(folder), embedding_model=model)) as memory:
                await take_in(memory, talks)
                for name in (short_name(model), f"{short_name(model)}, {FACTS}"):
                    if name.endswith(FACTS):
                        await add_facts(memory, talks)
                    found.passes[name] = await ask(memory, talks, doing=name)
                    found.in_last_session[name] = await ask(
                        memory, talks, doing=f"{name}, from the last session", in_last_session=True
                    )
                    if with_folds:
                        found.folds[name] = await cross_validated(memory, talks, doing=name)
    return found


def _embedders(base: MemoryConfig) -> Sequence[str]:
    return list(dict.fromkeys((base.embedding_model or LEXICAL, LEXICAL)))


async def _quantized(talks: Sequence[Talk], base: MemoryConfig, kinds: Sequence[Quantization]) -> Quantized:
    found = Quantized()
    for model in _embedders(base):
        of_model = await quantized(talks, base.replace(embedding_model=model), kinds, doing=short_name(model))
        found.passes |= of_model.passes
        found.kept |= of_model.kept
    return found


def _raw(found: Found) -> dict[str, Any]:
    groups: Mapping[str, dict[str, list[Outcome]]] = {
        "passes": found.passes,
        "folds": found.folds,
        "from the last session": found.in_last_session,
    }
    return {
        group: {name: figures(outcomes).as_json() for name, outcomes in passes.items()}
        for group, passes in groups.items()
    }


async def _scale(base: MemoryConfig, sizes: Scale) -> tuple[list[Row], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        say(f"measuring a search at {sizes.others[0]:,} to {sizes.others[-1]:,} messages of others")
        async with open_memory(base.replace(data_dir=Path(folder))) as memory:
            return await scale(memory, sizes)


if __name__ == "__main__":
    sys.exit(main())
