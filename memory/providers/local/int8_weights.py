"""Writes a copy of an ONNX model whose weights are 8-bit numbers: `python -m MODULE SOURCE TARGET` (extra `local`).

ONNX Runtime's dynamic quantization, each column by a scale of its own:
https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html. It takes several times the model's
memory, which a process of its own gives back.
"""

import os
import subprocess
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from uuid import uuid4

_MAKING_SECONDS = 300.0
_OPERATIONS = ["MatMul", "Gemm", "Attention"]
"""What reads weights as a whole. Of the table of words a query reads a few rows, and in 8 bits they cost recall: of
LoCoMo's multi-hop and open-domain questions 0.3 and 0.4 points at 10, in place of 0.0 and 0.3."""
_NAME_LENGTH = 32


def int8_copy(model_file: Path) -> Path:
    """Return the 8-bit copy of `model_file` in this user's cache, made by a process of its own where it is missing.

    A changed file, or another version of ONNX Runtime, has another copy.

    Raises:
        OSError: the cache cannot be written.
        subprocess.SubprocessError: the copy could not be made, or not in 300 seconds.
    """
    onnxruntime = import_module("onnxruntime")  # has no types
    told = model_file.stat()
    made_of = (model_file.resolve(), told.st_size, told.st_mtime_ns, onnxruntime.__version__, *_OPERATIONS)
    copied = _cache() / f"{sha256(repr(made_of).encode()).hexdigest()[:_NAME_LENGTH]}.onnx"
    if not copied.is_file():
        unfinished = copied.with_suffix(f".{uuid4().hex}")
        try:
            subprocess.run(
                [sys.executable, "-m", __spec__.name, str(model_file), str(unfinished)],
                check=True,
                capture_output=True,
                timeout=_MAKING_SECONDS,
            )
            unfinished.replace(copied)
        finally:
            unfinished.unlink(missing_ok=True)
    return copied


def _cache() -> Path:
    """Return the folder of the copies, which this user alone may read: a model from it is run."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise FileNotFoundError("This user has no home folder, and XDG_CACHE_HOME is not set.") from error
    folder = base / "recollect" / "int8"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _main() -> None:
    quantization = import_module("onnxruntime.quantization")
    source, target = sys.argv[1:]
    quantization.quantize_dynamic(
        source, target, per_channel=True, weight_type=quantization.QuantType.QInt8, op_types_to_quantize=_OPERATIONS
    )


if __name__ == "__main__":
    _main()
