"""Defers the building of pydantic's validators, which most models of a start never need.

FastAPI defines some sixty models of the OpenAPI text, and the service has its own answers in models: for each of them
pydantic would build a validator and a serialiser when its class is defined.
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
