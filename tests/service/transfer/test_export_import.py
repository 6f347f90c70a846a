"""An export, imported elsewhere, is an equal memory: embedded and on servers, as JSON Lines and as an archive."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect, recollecting
from tests.service.support.export_of import exported, full_memory, lines, of_type, posted, settled, taken
from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import facts, learning, texts

SMALL = {"MEMORY_WINDOW": "2", "SUMMARY_EVERY": "2"}
FORMS = ("jsonl", "markdown")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with a full memory of "ada". Nothing in it changes any more."""
    with FakeOpenAI() as fake:
        fake.on_chat = learning
        with service(tmp_path_factory.mktemp("original"), **model_settings(fake.url, **SMALL)) as running:
            full_memory(running, "ada", fake)
            yield running


@pytest.fixture
def mongo_settings(mongodb_url: str) -> Iterator[dict[str, str]]:
    """Yield a database of the test's own."""
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": name}
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        client.drop_database(name)


def shown(running: Service) -> list[Any]:
    """Return what people see of "ada" through the other doors."""
    threads = running.get("/api/threads", user_id="ada", limit=200)["items"]
    names = [thread["thread_id"] for thread in threads]
    found: list[Any] = [threads, [running.get(f"/api/threads/{name}", user_id="ada") for name in names]]
    found += [texts(running, user="ada", thread=name) for name in names]
    found += [running.get(f"/api/threads/{name}/documents", user_id="ada") for name in [*names, "t9"]]
    found.append(running.get("/api/users/ada/facts", limit=200))
    turns = {line["turn_id"] for line in of_type(exported(running, "ada"), "turn")}
    return [*found, *(running.get(f"/api/turns/{turn_id}", user_id="ada") for turn_id in sorted(turns))]


def without_times(said: list[Any]) -> list[Any]:
    """Return the same without when a document was last indexed, and the version of its header."""
    text = json.dumps(said)
    return [json.loads(text, object_hook=lambda one: {k: v for k, v in one.items() if k != "updated_at"})]


@pytest.mark.parametrize("form", FORMS)
def test_an_import_elsewhere_makes_an_equal_memory(original: Service, tmp_path: Path, form: str) -> None:
    content, said = exported(original, "ada"), exported(original, "ada", format=form)
    assert {line["type"] for line in lines(content)} == {"message", "fact", "turn", "thread", "summary", "document"}
    with service(tmp_path, **original.settings) as copy:
        assert taken(copy, said) == (len(lines(content)), 0, [])
        settled(copy)
        assert exported(copy, "ada") == content
        assert without_times(shown(copy)) == without_times(shown(original))
        assert taken(copy, said) == (0, len(lines(content)), [])
        assert exported(copy, "ada", format="markdown") == exported(original, "ada", format="markdown")
        search = {"user_id": "ada", "query": "My city is Paris", "top_k": 9}
        found, there = (one.http.post("/api/memory/search", json=search).json()["hits"] for one in (copy, original))
        assert [hit["id"] for hit in found] == [hit["id"] for hit in there]


def test_to_servers_and_back(original: Service, tmp_path: Path, mongo_settings: dict[str, str]) -> None:
    content = exported(original, "ada")
    for folder in ("servers", "back"):
        (tmp_path / folder).mkdir()
    with service(tmp_path / "servers", **original.settings, **mongo_settings) as servers:
        assert servers.get("/health")["backends"]["documents"] == "mongodb"
        assert taken(servers, content) == (len(lines(content)), 0, [])
        settled(servers)
        assert exported(servers, "ada") == content
        assert without_times(shown(servers)) == without_times(shown(original))
        assert taken(servers, content) == (0, len(lines(content)), [])
        archive = exported(servers, "ada", format="markdown")
    with service(tmp_path / "back", **original.settings) as back:
        assert taken(back, archive) == (len(lines(content)), 0, [])
        settled(back)
        assert exported(back, "ada") == content


def test_what_a_turn_taught_can_be_undone_after_an_import(original: Service, tmp_path: Path) -> None:
    with service(tmp_path, **original.settings) as copy:
        taken(copy, exported(original, "ada"))
        (turn,) = [
            line
            for line in of_type(exported(copy, "ada"), "turn")
            if any(change["after"] == "Rome" for change in line.get("update", {}).get("changes", ()))
        ]
        assert facts(copy, user="ada")["city"] == "Rome"
        undone = copy.http.post(f"/api/turns/{turn['turn_id']}/undo", params={"user_id": "ada"})
        assert undone.is_success, undone.text
        assert facts(copy, user="ada")["city"] == "Paris"
        repeated = copy.turn("My city is Rome", turn_id=turn["turn_id"])
        assert repeated["reply"] == original.get(f"/api/turns/{turn['turn_id']}", user_id="ada")["reply"]


def test_through_the_command_line(original: Service, tmp_path: Path) -> None:
    content = exported(original, "ada")
    files = [tmp_path / "ada.jsonl", tmp_path / "ada.zip"]
    for form, file in zip(FORMS, files, strict=True):
        done = recollect(original, "export", "--user", "ada", "--format", form, "-o", str(file))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert file.stat().st_mode & 0o777 == 0o600
    assert files[0].read_bytes() == content
    for file in files:
        (tmp_path / file.suffix).mkdir()
        copy = Service(tmp_path / file.suffix, **original.settings)
        assert recollect(copy, "import", str(file)).returncode == 0
        told = recollect(copy, "export", "--user", "ada")
        assert told.stdout.encode() == content, told.stderr
        with copy:
            assert f"{len(lines(content))} known already, 0 failed" in recollect(copy, "import", str(file)).stdout


def talked(tmp_path: Path, turns: int) -> bytes:
    """Return the export of a long talk in three threads."""
    with service(tmp_path) as running:
        said = [
            {"user_id": "ada", "thread_id": f"t{number % 3}", "role": role, "content": f"{role} {number}"}
            | {"timestamp": 1_700_000_000 + number}
            for number in range(turns)
            for role in ("user", "assistant")
        ]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in said)
        assert taken(running, content) == (2 * turns, 0, [])
        return exported(running, "ada")


@pytest.mark.slow
@pytest.mark.parametrize("is_mongo", [False, True])
def test_killed_on_the_way_and_imported_again(tmp_path: Path, is_mongo: bool, request: pytest.FixtureRequest) -> None:
    settings: dict[str, str] = request.getfixturevalue("mongo_settings") if is_mongo else {}
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    turns = 200 if is_mongo else 600
    content = talked(tmp_path / "first", turns)
    file = tmp_path / "ada.jsonl"
    file.write_bytes(content)
    copy = Service(tmp_path / "second", **settings)
    copy.data_dir.mkdir()
    with Service(tmp_path / "second", port=copy.port, **settings) as running:
        for least in (1, turns):
            importing = recollecting(running, "import", str(file))
            until(lambda least=least: running.get("/memory-stats", user_id="ada")["messages"] >= least, 60)
            running.kill()
            importing.communicate(timeout=60)
            running.start()
        imported, known, failed = taken(running, content)
        assert (imported + known, failed) == (len(lines(content)), [])
        settled(running)
        assert exported(running, "ada") == content


def test_what_is_there_stays_and_conflicts_are_named(original: Service, tmp_path: Path) -> None:
    content = exported(original, "ada")
    whole = lines(content)
    (turn,) = [line for line in whole if line["type"] == "turn" and line["position"] == 1 and line["thread_id"] == "t1"]
    with service(tmp_path) as copy:
        here = FactsOf(copy, "ada")
        assert here.put("city", value="Oslo")
        copy.turn("Quite another one.", turn_id=turn["turn_id"], thread="t5", memory={"enabled": False})
        copy.turn("Of my own.", thread="t2", memory={"enabled": False})
        imported, known, failed = taken(copy, content)
        errors = {line["error"] for line in failed}
        assert errors == {
            "Another fact lives under this key here; change or forget that one, then import again.",
            "turn_id belongs to another turn of this user.",
        }
        assert imported + known + len(failed) == len(whole)
        assert here.known()["city"] == "Oslo"
        assert texts(copy, thread="t2")[0][1] == "Of my own."
        assert len(texts(copy, thread="t2")) == 2 + len(texts(original, thread="t2"))
        thread = copy.get("/api/threads/t2", user_id="ada")
        assert (thread["archived"], thread["summary"]) == (
            False,
            original.get("/api/threads/t2", user_id="ada")["summary"],
        )
        named = here.one("name")
        here.write("PATCH", f"/{named['id']}", {"value": "Augusta"})
        assert here.ask("DELETE", f"/{here.one('job')['id']}").status_code == 204
        before = exported(copy, "ada")
        assert taken(copy, content)[0] == 0
        assert exported(copy, "ada") == before


def zipped(files: dict[str, bytes], **options: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


FACT = b"---\ntype: fact\n---\nText.\n"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"PK\x03\x04" + b"\x00" * 100, 422),
        (b"PK\x05\x06", 422),
        (zipped({})[:-1], 422),
        (zipped({"ada/facts/a.md": b"\x00" * 2_000_000}, compression=zipfile.ZIP_DEFLATED), 413),
        (zipped({f"ada/facts/{n}.md": b"" for n in range(100_001)}), 413),
    ],
    ids=["garbage", "no files", "cut off", "a bomb", "too many files"],
)
def test_hostile_archives_are_refused(bounded: Service, content: bytes, status: int) -> None:
    answer = posted(bounded, content)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"] == {422: "invalid_request", 413: "too_large"}[status]
    assert bounded.get("/health")["status"] == "ok"


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("bounded"), MAX_UNPACKED_MB="1") as running:
        yield running


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"ada/facts/a.md": FACT}, {"compression": zipfile.ZIP_LZMA}),
        ({"ada/facts/a.md": FACT}, {"compression": zipfile.ZIP_BZIP2}),
        ({"ada/facts/a.md": b"\xff"}, {}),
        ({"../../facts/a.md": FACT}, {}),
        ({"/etc/facts/a.md": FACT}, {}),
        ({"ada/facts/a.md": b"---\ntype: message\n---\n"}, {}),
        ({"ada/facts/a.md": b"---\ntype: fact\nkey: [a]\n---\n"}, {}),
        ({"ada/t/turns/a.md": b"---\ntype: turn\nuser: 1\n---\n"}, {}),
        ({"ada/t/turns/a.md": b"---\ntype: turn\nuser: {}\nassistant: {}\n---\n"}, {}),
        ({"ada/documents/a.md": b"---\ntype: document\npassages: [{characters: 9}]\n---\n"}, {}),
        ({"ada/t/summary.md": b"---\ntype: thread\n---\n"}, {}),
    ],
)
def test_hostile_files_of_an_archive_are_named(bounded: Service, files: dict[str, bytes], options: Any) -> None:
    imported, known, failed = taken(bounded, zipped(files, **options))
    assert (imported, known) == (0, 0)
    assert failed
    assert all(line["error"].endswith(".") for line in failed)
    assert exported(bounded, "ada") == b""


def test_files_that_were_not_read_are_named(bounded: Service) -> None:
    others = {"README.md": b"x", "__MACOSX/._a.md": b"x", "ada/facts/": b"", "ada/facts/a.txt": b"x", "facts.md": b"x"}
    imported, known, failed = taken(bounded, zipped(others))
    assert (imported, known) == (0, 0)
    assert [line["error"] for line in failed] == [
        "README.md: The file does not begin with front matter (---).",
        "facts.md: The file does not begin with front matter (---).",
    ]
    pictures = {".DS_Store": b"x", "a/b.png": b"x", "notes.txt": b"x"}
    imported, known, failed = taken(bounded, zipped(pictures))
    assert [line["error"] for line in failed] == [
        "notes.txt is no Markdown file of an export.",
        "a/b.png is no Markdown file of an export.",
    ]


def test_a_command_whose_archive_holds_no_export_fails(bounded: Service, tmp_path: Path) -> None:
    file = tmp_path / "notes.zip"
    file.write_bytes(zipped({"notes/monday.md": b"Tea.", "notes/tuesday.md": b"Coffee."}))
    ended = recollect(bounded, "import", str(file))
    assert ended.returncode == 1
    assert "Imported 0, 0 known already, 2 failed." in ended.stdout
    assert "notes/monday.md: The file does not begin with front matter (---)." in ended.stdout
