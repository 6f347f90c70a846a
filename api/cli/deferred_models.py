"""Defers the building of FastAPI's own models, some sixty of the OpenAPI text, until somebody asks for that text.

For each of them pydantic would build a validator and a serialiser when its class is defined. The service's models are
built at once: FastAPI hides the warnings of that, and could not at a model's first use.
"""

from collections.abc import Generator
from contextlib import contextmanager

from pydantic import BaseModel


@contextmanager
def deferred_models() -> Generator[None]:
    """Let the models whose classes are defined meanwhile be built when each is first used.

    Classes copy their configuration from their base when they are defined, so that those defined before and after have
    their own.
    """
    before = BaseModel.model_config
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before
