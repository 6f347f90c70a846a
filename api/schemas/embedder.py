"""The embedder that a request prepares, and the answers of its routes."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt

from recollect.api.schemas.requests import check_request_text
from recollect.memory.ports.embedder import EmbedderSpec


class PrepareRequest(BaseModel):
    """The embedder to prepare, as settings name one; provider, address and key stay those of the service."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"model": "text-embedding-3-large", "dimensions": 1024}]}
    )

    model: Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(check_request_text)] = Field(
        description="As EMBEDDING_MODEL."
    )
    dimensions: Annotated[StrictInt, Field(ge=1, le=65_536)] | None = Field(
        None, description="As EMBEDDING_DIMENSIONS."
    )
    path: (
        Annotated[str, Field(strict=True, min_length=1, max_length=4_096), AfterValidator(check_request_text)] | None
    ) = Field(None, description="As EMBEDDING_MODEL_PATH: a folder on the service's machine.")

    def spec(self) -> EmbedderSpec:
        """Return the domain's value."""
        return EmbedderSpec(self.model, self.dimensions, self.path)


class EmbedderAnswer(BaseModel):
    """An embedder, and the number of points in its collection."""

    model: str
    dimensions: int | None
    path: str | None
    collection: str
    points: int


class FillingAnswer(BaseModel):
    """How far a filling is, in points."""

    done: int
    total: int


class EmbedderStatusAnswer(BaseModel):
    """Which embedder serves, and which one is prepared or was switched from."""

    configured: str = Field(description="EMBEDDING_MODEL, or its default.")
    serving: EmbedderAnswer
    other: EmbedderAnswer | None
    stage: Literal["filling", "ready", "switched", "dropping"] | None = Field(
        description="Of the other one: it is being filled, can serve, served until the switch, is being deleted."
    )
    expected: int = Field(description="How many points a whole collection has.")
    progress: FillingAnswer | None
