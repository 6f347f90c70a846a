"""Objects of a program: those that it passes where settings pass names, and those that settings name."""

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from typing_extensions import override

from recollect.memory.values.errors import ConfigurationError

_EMBEDS = ("embed_documents", "aembed_documents", "encode")
_ANSWERS = (("ainvoke", "astream"), ("complete", "stream"))


class _Given:
    """Holds one object, and compares by it: agents that are given the same object share one open memory."""

    def __init__(self, given: object) -> None:
        self.given = given

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.given is self.given

    @override
    def __hash__(self) -> int:
        return hash((type(self), id(self.given)))

    @property
    def name(self) -> str:
        """The model's name: the object's `model`, `model_name`, `model_id` or `name`, or the name of its class."""
        for attribute in ("model", "model_name", "model_id", "name"):
            name = getattr(self.given, attribute, None)
            if isinstance(name, str) and name:
                return name
        return type(self.given).__name__


class GivenEmbeddings(_Given):
    """An object that embeds: the port `Embedder`, LangChain's `Embeddings`, or one that has `encode`.

    `setting` is what errors name.

    Raises:
        ConfigurationError: the object does not embed, or is a class.
    """

    def __init__(self, given: object, *, setting: str = "embedder") -> None:
        super().__init__(given)
        if isinstance(given, type) or not any(hasattr(given, call) for call in _EMBEDS):
            raise ConfigurationError(
                f"{setting} must be an object that embeds: LangChain's Embeddings, or Recollect's own port Embedder."
            )

    @property
    def is_port(self) -> bool:
        """Tell whether it has the port's methods, which LangChain's have not."""
        is_async = inspect.iscoroutinefunction(getattr(self.given, "embed_documents", None))
        return is_async and all(hasattr(self.given, name) for name in ("model", "dimension", "embed_query", "ping"))


class GivenChat(_Given):
    """An object that answers: the port `ChatModel`, or LangChain's chat model.

    Raises:
        ConfigurationError: the object does not answer, or is a class.
    """

    def __init__(self, given: object) -> None:
        super().__init__(given)
        if isinstance(given, type) or not any(all(hasattr(given, call) for call in calls) for calls in _ANSWERS):
            raise ConfigurationError(
                "chat must be an object that answers: LangChain's chat model, or Recollect's own port ChatModel."
            )

    @property
    def is_port(self) -> bool:
        """Tell whether it has the port's methods, which LangChain's have not."""
        return not hasattr(self.given, "ainvoke")


def load_named(setting: str, path: str) -> Any:
    """Load the object at `package.module:attribute`, which `setting` names.

    Modules of the working directory are found too, which an installed command's path lacks. It reads from disk, so an
    event loop calls it in a thread.

    Raises:
        ConfigurationError: there is no such module or attribute, or the module cannot be imported.
    """
    module_name, _, attribute = path.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{setting} cannot be loaded: {error}. Set it to package.module:attribute.") from error
    except Exception as error:
        # A foreign module may raise anything when it is imported.
        raise ConfigurationError(
            f"{setting} cannot be loaded: its module raised {type(error).__name__} ({error})."
        ) from error
