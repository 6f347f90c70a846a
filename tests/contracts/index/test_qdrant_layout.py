"""A Qdrant server is told a collection's layout: when it is made, where it stands, and in each search."""

import json
import logging
from typing import Any

import pytest

from recollect.memory.ports.vector_index import Query
from recollect.memory.stores.qdrant.index import open_qdrant_index
from recollect.memory.stores.qdrant.layout import CollectionLayout
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, vector
from tests.contracts.index.scripted_qdrant import DONE, INDEXED, LEADS, MISSING, NAME, NO_ALIAS, Answer, serving

CHOSEN = CollectionLayout(shards=4, replicas=2, write_consistency=2, on_disk=True, quantization="scalar")
SHORT = {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}}
NONE_FOUND: Answer = (200, '{"result": [{"points": []}]}')


def standing(**config: Any) -> Answer:
    """Return a server's answer on a collection that was made with its defaults, but for `config`."""
    flat = {"size": DIMENSION, "distance": "Cosine", **config.pop("vector", {})}
    params = {"vectors": {"dense": flat, "context": flat}, "shard_number": 1, "replication_factor": 1}
    result = {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "config": {
            "params": {**params, "write_consistency_factor": 1, "on_disk_payload": False, **config.pop("params", {})},
            "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            **config,
        },
        "payload_schema": {},
    }
    return 200, json.dumps({"result": result})


async def heard_of(layout: CollectionLayout, answers: dict[str, list[Answer]]) -> list[tuple[str, str, Any]]:
    """Return what a server hears when a count and a search reach it first."""
    with serving(status=200, answers=answers) as (server, handler):
        async with open_qdrant_index(server, base="outage", model=MODEL, dimension=DIMENSION, layout=layout) as index:
            await index.rank([Query(Scope("ada"), vector(1), limit=1)])
    return list(handler.heard)


ASKED: dict[str, list[Answer]] = {"/index": [INDEXED], ".current/points/query/batch": [NONE_FOUND]}
NEW: dict[str, list[Answer]] = {"/aliases": [NO_ALIAS], "/exists": [MISSING], "": [DONE], **ASKED}


async def test_a_new_collection_is_made_as_chosen() -> None:
    heard = await heard_of(CHOSEN, NEW)
    (made,) = [body for method, path, body in heard if (method, path) == ("PUT", f"/collections/{NAME}")]
    assert (made["shard_number"], made["replication_factor"], made["write_consistency_factor"]) == (4, 2, 2)
    assert made["on_disk_payload"] is True
    assert {name: item["on_disk"] for name, item in made["vectors"].items()} == {"dense": True, "context": True}
    assert made["quantization_config"] == SHORT


async def test_unset_settings_leave_the_servers_defaults() -> None:
    heard = await heard_of(CollectionLayout(), NEW)
    (made,) = [body for method, path, body in heard if (method, path) == ("PUT", f"/collections/{NAME}")]
    chosen = {
        "shard_number",
        "replication_factor",
        "write_consistency_factor",
        "on_disk_payload",
        "quantization_config",
    }
    assert chosen.isdisjoint(made)
    (asked,) = [body for _, path, body in heard if path.endswith("/query/batch")]
    assert asked["searches"][0].get("params") is None


@pytest.mark.parametrize(("kind", "times"), [("scalar", 1.5), ("binary", 3.0)])
async def test_hits_found_by_short_forms_are_ranked_by_whole_vectors(kind: Any, times: float) -> None:
    heard = await heard_of(CollectionLayout(quantization=kind), NEW)
    (asked,) = [body for _, path, body in heard if path.endswith("/query/batch")]
    assert asked["searches"][0]["params"]["quantization"] == {"rescore": True, "oversampling": times}


async def test_a_standing_collection_is_changed_where_it_differs(caplog: pytest.LogCaptureFixture) -> None:
    answers: dict[str, list[Answer]] = {"/aliases": [LEADS], "": [standing(), DONE], **ASKED}
    with caplog.at_level(logging.WARNING):
        heard = await heard_of(CHOSEN, answers)
    (changed,) = [body for method, _, body in heard if method == "PATCH"]
    assert changed["params"] == {"replication_factor": 2, "write_consistency_factor": 2, "on_disk_payload": True}
    assert {name: item["on_disk"] for name, item in changed["vectors"].items()} == {"dense": True, "context": True}
    assert changed["quantization_config"] == SHORT
    assert "index_shards_differ" in [getattr(record, "action", None) for record in caplog.records]


async def test_a_collection_that_stands_as_chosen_is_left_alone() -> None:
    as_chosen = standing(
        vector={"on_disk": True},
        params={"shard_number": 4, "replication_factor": 2, "write_consistency_factor": 2, "on_disk_payload": True},
        quantization_config=SHORT,
    )
    answers: dict[str, list[Answer]] = {"/aliases": [LEADS], "": [as_chosen], **ASKED}
    heard = await heard_of(CHOSEN, answers)
    assert [path for method, path, _ in heard if method in {"PATCH", "PUT"} and path == f"/collections/{NAME}"] == []
