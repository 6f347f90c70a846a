"""The doctor finds each difference that was planted, and nothing where all is well; failed updates are replayed."""

import json
from dataclasses import replace
from pathlib import Path

from recollect.memory.index.doctor import Findings, Report, examine
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.index.indexing import IndexStep, make_points
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import Point, VectorIndex, episode
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.updates.replay import Replayed, replay_failed
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.update import Step, Update
from tests.contracts.store.samples import asked, finish
from tests.domain.support.indexed import (
    LATER,
    LEARNED,
    CountingEmbedder,
    all_ids,
    archive,
    begin,
    learn,
    point_of,
    tell,
)
from tests.domain.support.updating import Scripted, updater

FAILED = Update(steps={"facts": Step("failed", "why", 5, 5), "index": Step("done")})


async def examined(store: Store, index: VectorIndex) -> Report:
    return await examine(store, index, CountingEmbedder(), now=LATER)


async def settled(store: Store, index: VectorIndex) -> None:
    points = IndexOutbox(store, index, CountingEmbedder())
    for user_id in await points.users():
        await points.sync(user_id)


async def test_nothing_is_wrong_with_nothing(store: Store, index: VectorIndex) -> None:
    report = await examined(store, index)
    assert report == Report({}, Findings())
    assert report.healthy
    assert report.advice == []


async def test_nothing_is_wrong_where_the_index_has_followed(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 5)
    await tell(store, index, 2, user_id="bob")
    await finish(store, "disabled")
    await learn(store)
    await learn(store, "f2", key="k2", status="rejected")
    await learn(store, "f3", user_id=GLOBAL_USER, scope="global")
    await archive(store)
    await settled(store, index)
    report = await examined(store, index)
    assert report.users == {
        GLOBAL_USER: Findings(facts=1, points=1),
        "ada": Findings(messages=10, facts=1, summaries=1, points=12),
        "bob": Findings(messages=4, points=4),
    }
    assert report.totals == Findings(messages=14, facts=2, summaries=1, points=17)
    assert report.healthy
    assert report.advice == []


async def test_missing_points_of_each_kind_are_found(store: Store, index: VectorIndex) -> None:
    messages = await tell(store, index, 3)
    fact, record = await learn(store), await archive(store)
    await settled(store, index)
    await index.remove(user_id="ada", ids=[messages[0].id, messages[3].id, point_of(fact), record.point_id])
    report = await examined(store, index)
    assert report.users["ada"] == Findings(messages=6, facts=1, summaries=1, points=4, missing=4)
    assert not report.healthy
    assert report.advice == ["The index differs from the documents: run `recollect reindex`."]


async def test_orphans_are_found_also_of_users_whom_the_documents_do_not_know(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 3)
    fact = await learn(store)
    await settled(store, index)
    assert await store.facts.remove(user_id="ada", fact_ids=[fact.id]) == 1
    gone = [replace(asked(f"gone{number}"), user_id="eve") for number in range(2)]
    await finish(store, "disabled")
    await IndexStep(index, CountingEmbedder(), store.timeline).add([*gone, asked("gone"), asked("disabled")])
    report = await examined(store, index)
    assert report.users["ada"] == Findings(messages=6, points=9, orphaned=3)
    assert report.users["eve"] == Findings(points=2, orphaned=2)
    assert report.totals.orphaned == 5
    assert not report.healthy


async def test_points_made_from_something_else_are_found(store: Store, index: VectorIndex) -> None:
    messages = await tell(store, index, 3)
    await tell(store, index, 1, user_id="bob")
    embedder = CountingEmbedder()
    (other_text,) = await make_points([replace(episode(messages[0]), content="Something else.")], embedder)
    embedder.model = "lexical-v0"
    (other_model,) = await make_points([episode(messages[1])], embedder)
    before_fingerprints = Point(episode(messages[2]), other_model.dense)
    await index.upsert([other_text, other_model, before_fingerprints])
    report = await examined(store, index)
    assert report.users["ada"] == Findings(messages=6, points=6, wrong_fingerprint=3)
    assert report.advice == ["The index differs from the documents for one user: run `recollect reindex --user ada`."]


async def test_what_is_pending_is_not_wrong(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 2)
    messages = await begin(store)
    fact = await learn(store)
    await settled(store, index)
    changed = fact.revised(at=LATER, statement="Ada is Eve.")
    assert await store.facts.replace(changed, revision=1)
    await archive(store)
    await IndexStep(index, CountingEmbedder(), store.timeline).add(messages[:1])  # its step is not recorded yet
    report = await examined(store, index)
    (found,) = report.users.values()
    assert found.pending == 3  # the turn, the fact, the summary
    assert found.oldest_pending_seconds is not None
    assert 290 < found.oldest_pending_seconds <= 300
    assert (found.missing, found.orphaned, found.wrong_fingerprint) == (0, 0, 0)
    assert report.healthy
    assert report.advice == ["3 updates are pending: a running service works them off by itself."]


async def test_failed_updates_are_found_and_replayed(store: Store, index: VectorIndex) -> None:
    exchange = await finish(store, "turn1", update=FAILED)
    await finish(store, "turn2", update=LEARNED)
    await finish(store, "turn3", user_id="bob", update=FAILED)
    messages = [exchange.user, exchange.assistant]
    await IndexStep(index, CountingEmbedder(), store.timeline).add(messages)
    report = await examined(store, index)
    assert report.users["ada"].failed == 1
    assert report.totals.failed == 2
    assert not report.healthy
    assert "2 turns were not learned from: run `recollect learn --failed`." in report.advice

    facts = Scripted()
    facts.fail("turn3", *[ValueError("again") for _ in range(5)])
    async with updater(store, facts=facts) as works:
        assert await replay_failed(store, works, seconds=1.0) == Replayed(2, 1, 0, 1)
        assert facts.done.count("turn1") == 1
        assert await replay_failed(store, works, seconds=1.0) == Replayed(0, 0, 0, 0)


async def test_other_embedders_collections_are_named(store: Store, index: VectorIndex, tmp_path: Path) -> None:
    async with open_edge_index(tmp_path / "index", base="test", model="another", dimension=4) as other:
        await other.count()
    report = await examined(store, index)
    assert len(report.other_collections) == 1
    assert "another" in report.other_collections[0]
    assert report.healthy
    assert report.other_collections[0] in report.advice[0]


async def test_the_report_is_plain_json(store: Store, index: VectorIndex) -> None:
    await tell(store, index, 1)
    await index.remove(user_id="ada", ids=await all_ids(index))
    shown = (await examined(store, index)).as_json()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["healthy"] is False
    assert shown["users"][0]["user_id"] == "ada"
    assert shown["users"][0]["missing"] == shown["totals"]["missing"] == 2
