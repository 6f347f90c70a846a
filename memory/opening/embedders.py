"""Names embedders as a configuration does, and opens the indexes of their collections. A composition root."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from recollect.memory.index.lazy_index import LazyIndex
from recollect.memory.ports.embedder import Embedder, EmbedderSpec
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.providers.endpoint import FASTEMBED, LEXICAL, embedding_model_name
from recollect.memory.providers.roles import embedding_endpoint
from recollect.memory.providers.told_names import GIVEN, embedders_name
from recollect.memory.stores.edge.open_collections import OpenCollections
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.mem_config import MemoryConfig


def spec_of(config: MemoryConfig) -> EmbedderSpec:
    """Return the embedder that `config` names.

    Raises:
        ConfigurationError: it names a remote model and nothing serves it.
    """
    if config.given_embeddings is not None or config.embedder is not None:
        return EmbedderSpec("given")
    name = embedding_model_name(config, embedding_endpoint(config))
    is_local, path = name.startswith(FASTEMBED), config.embedding_model_path
    return EmbedderSpec(
        name,
        None if is_local or name == LEXICAL else config.embedding_dimensions,
        str(path) if is_local and path is not None else None,
    )


def provider_of(spec: EmbedderSpec, config: MemoryConfig) -> str:
    """Return who embeds with `spec`, by the name that traces and metrics give it."""
    return GIVEN if spec.model == "given" else embedders_name(spec.model, embedding_endpoint(config))


def configured_for(config: MemoryConfig, spec: EmbedderSpec) -> MemoryConfig:
    """Return `config` with the embedder of `spec`; its provider, address and key stay."""
    if spec == spec_of(config):
        return config
    path = None if spec.path is None else Path(spec.path)
    return config.replace(
        embedding_model=spec.model,
        embedding_dimensions=spec.dimensions,
        embedding_model_path=path,
        embedder=None,
        given_embeddings=None,
    )


def index_opener(config: MemoryConfig) -> Callable[[Embedder], LazyIndex]:
    """Return what opens the index of an embedder's collection, once the embedder's dimension is known."""
    if config.qdrant_url is not None:
        return lambda embedder: LazyIndex("qdrant", embedder, partial(_on_server, config, embedder.model))
    beside = OpenCollections()
    return lambda embedder: LazyIndex("qdrant-edge", embedder, partial(_embedded, config, embedder.model, beside))


def _on_server(config: MemoryConfig, model: str, dimension: int) -> AbstractAsyncContextManager[VectorIndex]:
    from recollect.memory.stores.qdrant.index import QdrantServer, open_qdrant_index
    from recollect.memory.stores.qdrant.layout import CollectionLayout

    server = QdrantServer(
        config.qdrant_url or "",
        api_key=config.qdrant_api_key,
        prefer_grpc=config.qdrant_prefer_grpc,
        grpc_port=config.qdrant_grpc_port,
    )
    layout = CollectionLayout(
        shards=config.qdrant_shards,
        replicas=config.qdrant_replicas,
        write_consistency=config.qdrant_write_consistency,
        on_disk=config.qdrant_on_disk,
        quantization=config.qdrant_quantization,
    )
    return open_qdrant_index(
        server,
        base=config.qdrant_collection,
        model=model,
        dimension=dimension,
        layout=layout,
        keys=read_filter_keys(config.filter_keys),
    )


def _embedded(
    config: MemoryConfig, model: str, beside: OpenCollections, dimension: int
) -> AbstractAsyncContextManager[VectorIndex]:
    from recollect.memory.stores.edge.index import open_edge_index

    folder = config.data_dir / "index"
    return open_edge_index(
        folder,
        base=config.qdrant_collection,
        model=model,
        dimension=dimension,
        beside=beside,
        keys=read_filter_keys(config.filter_keys),
    )
