"""Makes a local embedding model read queries by 8-bit weights, where they give what its own weights give."""

import copy
import logging
import subprocess
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.memory.providers.local.int8_weights import int8_copy

if TYPE_CHECKING:
    from fastembed import TextEmbedding

logger = logging.getLogger(__name__)

LEAST_LIKENESS = 0.985
"""Least cosine of a sample by 8-bit weights and by the model's own. MiniLM's least of 300 questions is 0.991, by
which no figure of LoCoMo is lower by more than 0.3 points; without a scale for each column it would be 0.945."""
_CPU = ["CPUExecutionProvider"]
_SAMPLES = (
    "What is my puppy's name?",
    "Where did I park the car yesterday?",
    "the deadline of project Apollo, and who asked for it",
    "Wann fliegt Anna nach Lissabon?",
    "recipes without nuts",
    "How did our plans for the garden change between spring and autumn, and what did Melanie say about them?",
    "ERR_CONN_4021 after the upgrade to 2.7.1",
    "tea",
)


def query_model(loaded: "TextEmbedding") -> Any:
    """Return what embeds queries by `query_embed`: the model with 8-bit weights, else `loaded` itself, saying why.

    A query is one short text, whose time goes into reading the weights: by a quarter of the bytes MiniLM takes 1.6 ms
    in place of 3.7. Documents keep the model's own weights. Samples check the copy at each start, because processors
    differ in how they add 8-bit numbers.
    """
    own: Any = loaded.model
    try:
        if own.model.get_providers() != _CPU:
            return loaded
        small = copy.copy(own)
        file = Path(own._model_dir) / own.model_description.model_file  # fastembed tells the folder nowhere else
        small.model = _session(int8_copy(file))
        likeness = min(float(np.dot(_unit(own, text), _unit(small, text))) for text in _SAMPLES)
    except Exception as error:  # onnxruntime's and onnx's errors have no base in common
        logger.warning("queries are embedded by the model's own weights", extra=_why(error))
        return loaded
    if likeness < LEAST_LIKENESS:
        logger.warning(
            "queries are embedded by the model's own weights: those of 8 bits differ too much",
            extra={"action": "query_precision", "likeness": round(likeness, 3)},
        )
        return loaded
    return small


def _session(file: Path) -> Any:
    onnxruntime = import_module("onnxruntime")  # has no types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # as the model's own: the caller's thread
    return onnxruntime.InferenceSession(str(file), options, providers=_CPU)


def _unit(model: Any, text: str) -> Any:
    [vector] = model.query_embed([text])
    return vector / np.linalg.norm(vector)


def _why(error: Exception) -> dict[str, str]:
    told = {"action": "query_precision", "error": type(error).__name__}
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        told["last_line"] = error.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
    return told
