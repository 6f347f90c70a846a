"""Opens local cross-encoders through fastembed (ONNX; extra `local`)."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.memory.ports.reranker import Reranker
from recollect.memory.providers.local.local_model import LocalKind, LocalModel, batches_by_length
from recollect.memory.values.errors import ModelUnavailable

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder  # pyright: ignore[reportMissingTypeStubs]  # has none

_TEXT_CHARACTERS = 4_000
"""These models read even less of a text: some 512 tokens, query included."""
_FURTHEST = 36.0
"""Scores beyond it count as it: their sigmoid would be 1 exactly, in 64 bits."""


class LocalReranker(LocalModel["TextCrossEncoder"], Reranker):
    """Reranker over a loaded model."""

    @override
    async def relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text, of which the first 4,000 characters are read, as of the query.

        Raises:
            ModelUnavailable: the model cannot compute them.
        """
        if not texts:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._relevance, query, texts)

    def _relevance(self, query: str, texts: Sequence[str]) -> list[float]:
        asked, cut = query[:_TEXT_CHARACTERS], [text[:_TEXT_CHARACTERS] for text in texts]
        by_place: dict[int, float] = {}
        try:
            for places in batches_by_length(cut):
                scored = self._loaded.rerank(asked, [cut[place] for place in places])
                by_place.update(zip(places, scored, strict=True))
        except Exception as error:  # onnxruntime's and the tokenizer's errors have no base in common
            raise ModelUnavailable("The reranker failed; check RERANKER and RERANKER_PATH.", outage=False) from error
        scores = [by_place[place] for place in range(len(cut))]
        if not all(map(math.isfinite, scores)):
            raise ModelUnavailable("The reranker's scores are no numbers; check RERANKER_PATH.", outage=False)
        return list(map(sigmoid, scores))


def sigmoid(score: float) -> float:
    """Return 1 / (1 + e^-score), within (0, 1): never 0 or 1, however large the finite `score`."""
    bounded = max(-_FURTHEST, min(_FURTHEST, score))
    return 1.0 / (1.0 + math.exp(-bounded))


_KIND: "LocalKind[TextCrossEncoder]" = LocalKind(
    what="reranker",
    setting="RERANKER",
    path_setting="RERANKER_PATH",
    example="fastembed:Xenova/ms-marco-MiniLM-L-6-v2",
    module="fastembed.rerank.cross_encoder",
    class_name="TextCrossEncoder",
)


@asynccontextmanager
async def open_local_reranker(name: str, *, path: Path | None) -> AsyncGenerator[Reranker]:
    """Open the model `name`, loaded from `path`, else from fastembed's cache, else from the model hub.

    It works in one thread of its own, one search at a time.

    Raises:
        ConfigurationError: the package, the path or the model is missing, or the hub cannot be reached.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="reranker") as threads:
        yield LocalReranker(await _KIND.load(name, path=path, threads=threads), name=name, threads=threads)
