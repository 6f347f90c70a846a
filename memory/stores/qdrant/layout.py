"""Lays a collection out on a Qdrant server: how it is spread, copied, kept on disk and shrunk."""

from collections.abc import Iterable
from typing import Any, Literal

from qdrant_client import models

from recollect.memory.stores.points import CONTEXT, DENSE
from recollect.memory.values.frozen import frozen

Quantization = Literal["scalar", "binary"]
OVERSAMPLING: dict[Quantization, float] = {"scalar": 1.5, "binary": 3.0}
"""How many times the wanted vectors are found by their short forms, before the whole ones rank them."""
QUANTILE = 0.99
"""The share of a vector's numbers that a byte spreads over; the few beyond them are cut. Qdrant's advice."""


@frozen
class CollectionLayout:
    """Holds what an operator chooses for a collection; None leaves the server's default, or what stands.

    `shards` counts the parts that a collection is split into, `replicas` the copies of each, and `write_consistency`
    the copies that a write waits for.
    """

    shards: int | None = None
    replicas: int | None = None
    write_consistency: int | None = None
    on_disk: bool = False
    quantization: Quantization | None = None

    def vectors(self, dimension: int) -> dict[str, models.VectorParams]:
        """Return the parameters of both dense vectors."""
        vector = models.VectorParams(
            size=dimension, distance=models.Distance.COSINE, on_disk=True if self.on_disk else None
        )
        return {DENSE: vector, CONTEXT: vector}

    def creation(self) -> dict[str, Any]:
        """Return the arguments of `create_collection` that spread and shrink it."""
        return {
            "shard_number": self.shards,
            "replication_factor": self.replicas,
            "write_consistency_factor": self.write_consistency,
            "on_disk_payload": True if self.on_disk else None,
            "quantization_config": _quantized(self.quantization),
        }

    def changes(self, standing: models.CollectionConfig) -> dict[str, Any]:
        """Return the arguments of `update_collection` that bring a standing collection to this layout; {} where none.

        The number of shards is fixed when a collection is made; new copies are made of new shards alone.
        """
        changes: dict[str, Any] = {}
        asked = (
            ("write_consistency_factor", self.write_consistency, standing.params.write_consistency_factor),
            ("replication_factor", self.replicas, standing.params.replication_factor),
            ("on_disk_payload", self.on_disk or None, standing.params.on_disk_payload),
        )
        params: dict[str, Any] = {
            name: wanted for name, wanted, stands in asked if wanted is not None and wanted != stands
        }
        if params:
            changes["collection_params"] = models.CollectionParamsDiff(**params)
        if self.on_disk and not _lie_on_disk(standing.params.vectors):
            changes["vectors_config"] = {name: models.VectorParamsDiff(on_disk=True) for name in (DENSE, CONTEXT)}
        if self.quantization is not None and _kind(standing.quantization_config) != self.quantization:
            changes["quantization_config"] = _quantized(self.quantization)
        return changes

    def search(self) -> models.SearchParams | None:
        """Return how vectors are compared: found by their short forms, then ranked by the whole ones."""
        if self.quantization is None:
            return None
        rescored = models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING[self.quantization])
        return models.SearchParams(quantization=rescored)


SERVERS_OWN = CollectionLayout()
"""The layout that a server gives by itself."""


def _quantized(kind: Quantization | None) -> models.QuantizationConfig | None:
    match kind:
        case "scalar":
            scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=QUANTILE, always_ram=True)
            return models.ScalarQuantization(scalar=scalar)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
        case None:
            return None


def _kind(standing: models.QuantizationConfig | None) -> str | None:
    match standing:
        case models.ScalarQuantization():
            return "scalar"
        case models.BinaryQuantization():
            return "binary"
        case _:
            return None


def _lie_on_disk(vectors: models.VectorsConfig | None) -> bool:
    params: Iterable[models.VectorParams] = vectors.values() if isinstance(vectors, dict) else ()
    return all(item.on_disk for item in params)
