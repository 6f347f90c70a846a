"""Loads a local ONNX model of fastembed's (extra `local`) from a folder, from its cache, or from the model hub."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import httpx

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

logger = logging.getLogger(__name__)

HUB_SECONDS = 5.0
"""How long the model hub may take to answer at all, before a download from it is begun."""

BATCH = 16
"""Texts that a model reads at once. Twice as many took 12 % more CPU for chat messages in order of length."""

BATCH_CHARACTERS = 4_000
"""Most characters that a model reads at once, each text as long as the longest of its batch. Attention takes memory by
the square of a text's tokens: 16 texts of 512 tokens took half a gigabyte, which the runtime keeps."""

Loaded = TypeVar("Loaded")


def batches_by_length(texts: Sequence[str]) -> list[list[int]]:
    """Return the places of the texts, sorted by length, in batches of at most BATCH texts and BATCH_CHARACTERS.

    A batch costs its size times its longest text: sorted by length, chat messages take half the CPU. A longer text
    than BATCH_CHARACTERS is a batch of its own.
    """
    found: list[list[int]] = []
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place])):
        if found and len(found[-1]) < BATCH and (len(found[-1]) + 1) * len(texts[place]) <= BATCH_CHARACTERS:
            found[-1].append(place)
        else:
            found.append([place])
    return found


class LocalModel(Generic[Loaded]):
    """A loaded model. Its work is done in `threads`, which it does not shut down."""

    def __init__(self, loaded: Loaded, *, name: str, threads: ThreadPoolExecutor) -> None:
        self._loaded = loaded
        self._name = name
        self._threads = threads

    @property
    def model(self) -> str:
        """Return the model's name as fastembed knows it."""
        return self._name


@frozen
class LocalKind(Generic[Loaded]):
    """A kind of local model, such as "embedding model". Errors name `setting` and `path_setting`.

    `example` is a model's name as the setting takes it; `class_name` is fastembed's class, in its module `module`.
    """

    what: str
    setting: str
    path_setting: str
    example: str
    module: str
    class_name: str

    async def load(
        self, name: str, *, path: Path | None, threads: ThreadPoolExecutor, cores: int | None = None
    ) -> Loaded:
        """Load the model `name` in `threads` from `path`, else from fastembed's cache, else from the model hub.

        One run of the model takes so many `cores`; None: all. Checks first, for HUB_SECONDS at most, that the hub can
        be reached: fastembed itself tries for most of a minute.

        Raises:
            ConfigurationError: the package, the path or the model is missing, or the hub cannot be reached.
        """
        if path is not None and not await asyncio.to_thread(path.is_dir):
            raise ConfigurationError(f"{self.path_setting} is not a folder: it has to hold a model's files.")
        loop = asyncio.get_running_loop()
        loaded = await loop.run_in_executor(threads, self._load, name, path, cores, True)
        if loaded is None:
            await self._reach_hub()
            logger.info("fetching a local model", extra={"action": "model_download", "model": name})
            loaded = await loop.run_in_executor(threads, self._load, name, None, cores, False)
        if loaded is None:
            raise ConfigurationError(
                f"The {self.what} could not be fetched from the model hub: set {self.path_setting} to a folder with "
                f"its files, or check {self.setting}."
            )
        return loaded

    def _load(self, name: str, path: Path | None, cores: int | None, local_only: bool) -> Loaded | None:
        """Return the model, or None where it is missing and no path was given."""
        model_class = self._import()
        files = {str(model["model"]).lower(): str(model["model_file"]) for model in model_class.list_supported_models()}
        if name.lower() not in files:
            raise ConfigurationError(
                f"{self.setting} names no {self.what} that fastembed knows; one is {self.example}."
            )
        where: dict[str, Any] = {"specific_model_path": str(path)} if path else {}
        try:
            return model_class(name, threads=cores, local_files_only=local_only, **where)
        except Exception as error:  # onnxruntime's and the hub's errors have no base in common
            logger.debug("a local model did not load", exc_info=error, extra={"action": "model_load_failed"})
            if path is None:
                return None
            raise ConfigurationError(
                f"{self.path_setting} does not hold the files of the model that {self.setting} names: "
                f"{files[name.lower()]}, tokenizer.json and tokenizer_config.json."
            ) from error

    def _import(self) -> Any:
        try:
            from loguru import logger as loguru_logger

            import_module("fastembed")  # raises where it is missing, though its inner module was imported before
            found = getattr(import_module(self.module), self.class_name)
        except ImportError as error:
            raise ConfigurationError(
                f'{self.setting} names a local model, which needs another package: pip install "recollect[local]".'
            ) from error
        loguru_logger.disable("fastembed")  # it logs errors of attempts that may fail; the final error is raised
        return found

    async def _reach_hub(self) -> None:
        from huggingface_hub import constants

        try:
            async with asyncio.timeout(HUB_SECONDS), httpx.AsyncClient(timeout=HUB_SECONDS) as http:
                await http.head(constants.ENDPOINT)
        except (httpx.HTTPError, TimeoutError) as error:
            raise ConfigurationError(
                f"The {self.what} is not on this machine and its hub cannot be reached: set {self.path_setting} to a "
                "folder with the model's files."
            ) from error
