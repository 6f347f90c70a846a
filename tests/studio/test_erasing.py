"""An erasure and what LangGraph's server keeps: through its routes while it runs, its folder when it does not."""

from pathlib import Path

import httpx
import pytest

from recollect.graph.studio import mark_folder
from tests.service.support.locked import bearer, owner_token
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused
from tests.studio.running import studio

pytestmark = pytest.mark.slow

PAGE = "https://smith.langchain.com"
SAID, KEPT = "My secret garden is in Zanzibar.", "My tower is in Reykjavik."


def holding(folder: Path, text: str) -> list[str]:
    """Return the files below the folder that hold the text."""
    return [file.name for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def erased(http: httpx.Client, user: str) -> dict[str, dict[str, int]]:
    answer = http.delete(f"/api/users/{user}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_langgraph_forgets_who_is_erased_and_leaves_nothing_when_it_has_gone(tmp_path: Path) -> None:
    with studio(tmp_path) as running:
        first, second = running.thread(), running.thread()
        running.run(first, SAID, user_id="ada")
        running.run(first, "Hello.", user_id="bob")  # the last run's values say nothing of the first
        running.run(second, KEPT, user_id="bob")
        receipt = erased(running.http, "ada")
        assert receipt["counts"]["langgraph"] == 1
        assert receipt["remaining"]["langgraph"] == 0
        assert "langgraph_files" not in receipt["counts"]
        assert [thread["thread_id"] for thread in running.client.threads.search()] == [second]
        assert holding(tmp_path, "Zanzibar") == []
        assert erased(running.http, "nobody")["counts"]["langgraph"] == 0
        answer = running.http.delete("/api/threads/t1", params={"user_id": "bob"})
        assert answer.status_code == 204
        assert running.client.threads.search() == []
        running.run(running.thread(), KEPT, user_id="bob")
    folder = tmp_path / ".langgraph_api"
    assert holding(folder, "Reykjavik")
    assert folder.stat().st_mode & 0o077 == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Service(elsewhere, DATA_DIR=str(tmp_path / "data")) as plain:
        receipt = erased(plain.http, "bob")
        assert receipt["counts"]["langgraph_files"] >= 1
        assert receipt["remaining"]["langgraph_files"] == 0
        assert "langgraph" not in receipt["counts"]
        assert not folder.exists()
        assert "langgraph_files" not in erased(plain.http, "bob")["counts"], "there is no such place any more"


def test_langgraphs_routes_ask_for_a_key_too(tmp_path: Path) -> None:
    with studio(tmp_path, AUTH="api_key") as running:
        owner = bearer(owner_token(Service(tmp_path)))
        made = {
            role: bearer(running.http.post("/api/admin/keys", json={"role": role}, headers=owner).json()["key"])
            for role in ("admin", "user:ada")
        }

        def search(**headers: str) -> httpx.Response:
            return running.http.post("/threads/search", json={}, headers={"Origin": PAGE, **headers})

        refused(search(), 401, "unauthorized")
        refused(search(Authorization="Bearer wrong"), 401, "unauthorized")
        refused(search(**made["user:ada"]), 403, "forbidden")
        assert search(**made["admin"]).status_code == 200
        assert search().headers["access-control-allow-origin"] == PAGE, "so that the page can read why"
        asked = {
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        assert running.http.options("/threads/search", headers=asked).status_code == 200
        assert running.http.options("/api/threads", headers=asked).status_code == 403
        receipt = running.http.delete("/api/users/ada", headers=made["admin"]).json()
        assert receipt["remaining"]["langgraph"] == 0


def test_a_folder_beside_langgraph_json_goes_with_a_user_and_a_foreign_one_stays(tmp_path: Path) -> None:
    folder = tmp_path / ".langgraph_api"
    folder.mkdir()
    with service(tmp_path) as running:
        (folder / "store.pckl").write_bytes(b"of another project")
        assert "langgraph_files" not in erased(running.http, "ada")["counts"]
        (tmp_path / "langgraph.json").write_text('{"graphs": {"recollect": "recollect.graph.workflow:graph"}}')
        running.turn(SAID, user="ada")
        assert running.http.delete("/api/threads/t1", params={"user_id": "ada"}).status_code == 204
        assert folder.exists(), "it names neither the user nor the thread"
        assert erased(running.http, "ada")["counts"]["langgraph_files"] == 1
        assert not folder.exists()


def test_nothing_is_noted_where_there_is_no_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mark_folder(tmp_path / ":memory:")
    assert [found.name for found in tmp_path.iterdir()] == [".langgraph_api"]
