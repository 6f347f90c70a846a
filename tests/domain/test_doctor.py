"""The doctor finds each difference that was planted, and nothing where all is well; failed updates are replayed."""

import json
from dataclasses import replace
from pathlib import Path

from memory.doctor import Findings, Report, examine
from memory.documents import Documents
from memory.indexing import IndexStep, make_points
from memory.owed_points import OwedPoints
from memory.replay import Replayed, replay_failed
from memory.scope import GLOBAL_USER
from memory.stores.edge_index import open_edge_index
from memory.update import Step, Update
from memory.vector_index import Point, VectorIndex, episode
from tests.contracts.documents.samples import asked, finish
from tests.domain.indexed import (
    LATER,
    LEARNED,
    CountingEmbedder,
    all_ids,
    archive,
    begin,
    learn,
    tell,
)
from tests.domain.updating import Scripted, updater

FAILED = Update(steps={"facts": Step("failed", "why", 5, 5), "index": Step("done")})


async def examined(documents: Documents, index: VectorIndex) -> Report:
    return await examine(documents, index, CountingEmbedder(), now=LATER)


async def settled(documents: Documents, index: VectorIndex) -> None:
    points = OwedPoints(documents, index, CountingEmbedder())
    for user_id in await points.users():
        await points.sync(user_id)


async def test_nothing_is_wrong_with_nothing(documents: Documents, index: VectorIndex) -> None:
    report = await examined(documents, index)
    assert report == Report({}, Findings())
    assert report.healthy
    assert report.advice == []


async def test_nothing_is_wrong_where_the_index_has_followed(documents: Documents, index: VectorIndex) -> None:
    await tell(documents, index, 5)
    await tell(documents, index, 2, user_id="bob")
    await finish(documents, "disabled")
    await learn(documents)
    await learn(documents, "f2", key="k2", status="rejected")
    await learn(documents, "f3", user_id=GLOBAL_USER, scope="global")
    await archive(documents)
    await settled(documents, index)
    report = await examined(documents, index)
    assert report.users == {
        GLOBAL_USER: Findings(facts=1, points=1),
        "ada": Findings(messages=10, facts=1, summaries=1, points=12),
        "bob": Findings(messages=4, points=4),
    }
    assert report.totals == Findings(messages=14, facts=2, summaries=1, points=17)
    assert report.healthy
    assert report.advice == []


async def test_missing_points_of_each_kind_are_found(documents: Documents, index: VectorIndex) -> None:
    messages = await tell(documents, index, 3)
    fact, record = await learn(documents), await archive(documents)
    await settled(documents, index)
    await index.remove(user_id="ada", ids=[messages[0].id, messages[3].id, fact.id, record.point_id])
    report = await examined(documents, index)
    assert report.users["ada"] == Findings(messages=6, facts=1, summaries=1, points=4, missing=4)
    assert not report.healthy
    assert report.advice == ["The index differs from the documents: run `recollect reindex`."]


async def test_orphans_are_found_also_of_users_whom_the_documents_do_not_know(
    documents: Documents, index: VectorIndex
) -> None:
    await tell(documents, index, 3)
    fact = await learn(documents)
    await settled(documents, index)
    assert await documents.facts.remove(user_id="ada", fact_ids=[fact.id]) == 1
    gone = [replace(asked(f"gone{number}"), user_id="eve") for number in range(2)]
    await finish(documents, "disabled")
    await IndexStep(index, CountingEmbedder(), documents.timeline).add([*gone, asked("gone"), asked("disabled")])
    report = await examined(documents, index)
    assert report.users["ada"] == Findings(messages=6, points=9, orphaned=3)
    assert report.users["eve"] == Findings(points=2, orphaned=2)
    assert report.totals.orphaned == 5
    assert not report.healthy


async def test_points_made_from_something_else_are_found(documents: Documents, index: VectorIndex) -> None:
    messages = await tell(documents, index, 3)
    await tell(documents, index, 1, user_id="bob")
    embedder = CountingEmbedder()
    (other_text,) = await make_points([replace(episode(messages[0]), content="Something else.")], embedder)
    embedder.model = "lexical-v0"
    (other_model,) = await make_points([episode(messages[1])], embedder)
    before_fingerprints = Point(episode(messages[2]), other_model.dense)
    await index.upsert([other_text, other_model, before_fingerprints])
    report = await examined(documents, index)
    assert report.users["ada"] == Findings(messages=6, points=6, wrong_fingerprint=3)
    assert report.advice == ["The index differs from the documents for one user: run `recollect reindex --user ada`."]


async def test_what_is_pending_is_not_wrong(documents: Documents, index: VectorIndex) -> None:
    await tell(documents, index, 2)
    messages = await begin(documents)
    fact = await learn(documents)
    await settled(documents, index)
    changed = fact.revised(at=LATER, statement="Ada is Eve.")
    assert await documents.facts.replace(changed, revision=1)
    await archive(documents)
    await IndexStep(index, CountingEmbedder(), documents.timeline).add(messages[:1])  # its step is not recorded yet
    report = await examined(documents, index)
    (found,) = report.users.values()
    assert found.pending == 3  # the turn, the fact, the summary
    assert found.oldest_pending_seconds is not None
    assert 290 < found.oldest_pending_seconds <= 300
    assert (found.missing, found.orphaned, found.wrong_fingerprint) == (0, 0, 0)
    assert report.healthy
    assert report.advice == ["3 updates are pending: a running service works them off by itself."]


async def test_failed_updates_are_found_and_replayed(documents: Documents, index: VectorIndex) -> None:
    exchange = await finish(documents, "turn1", update=FAILED)
    await finish(documents, "turn2", update=LEARNED)
    await finish(documents, "turn3", user_id="bob", update=FAILED)
    messages = [exchange.user, exchange.assistant]
    await IndexStep(index, CountingEmbedder(), documents.timeline).add(messages)
    report = await examined(documents, index)
    assert report.users["ada"].failed == 1
    assert report.totals.failed == 2
    assert not report.healthy
    assert "2 turns were not learned from: run `recollect learn --failed`." in report.advice

    facts = Scripted()
    facts.fail("turn3", *[ValueError("again") for _ in range(5)])
    async with updater(documents, facts=facts) as works:
        assert await replay_failed(documents, works, seconds=1.0) == Replayed(2, 1, 0, 1)
        assert facts.done.count("turn1") == 1
        assert await replay_failed(documents, works, seconds=1.0) == Replayed(0, 0, 0, 0)


async def test_other_embedders_collections_are_named(documents: Documents, index: VectorIndex, tmp_path: Path) -> None:
    async with open_edge_index(tmp_path / "index", base="test", model="another", dimension=4) as other:
        await other.count()
    report = await examined(documents, index)
    assert len(report.other_collections) == 1
    assert "another" in report.other_collections[0]
    assert report.healthy
    assert report.other_collections[0] in report.advice[0]


async def test_the_report_is_plain_json(documents: Documents, index: VectorIndex) -> None:
    await tell(documents, index, 1)
    await index.remove(user_id="ada", ids=await all_ids(index))
    shown = (await examined(documents, index)).as_json()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["healthy"] is False
    assert shown["users"][0]["user_id"] == "ada"
    assert shown["users"][0]["missing"] == shown["totals"]["missing"] == 2
