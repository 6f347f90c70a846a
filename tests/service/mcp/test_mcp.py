"""MCP, with the SDK's own client, over HTTP and over standard input and output."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent, TextResourceContents
from mcp.types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect
from tests.service.support.running import PROJECT, Service, model_settings, service

TOOLS = ["search_memory", "add_memory", "list_facts", "forget"]
PROFILE = "memory://profile"
NUTS = "The user is allergic to nuts."
INVALID_PARAMS = -32602


@asynccontextmanager
async def over_http(
    running: Service, user: str | None = None, *, mode: str = "auto", query: str = "", **headers: str
) -> AsyncGenerator[Client]:
    """Provide a client of `/mcp` that names its user in the header."""
    named = {} if user is None else {"X-Memory-User": user}
    async with httpx2.AsyncClient(headers={**named, **headers}, timeout=60) as http:
        transport = streamable_http_client(f"{running.url}/mcp{query}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def over_stdio(folder: Path, user: str, *arguments: str, **settings: str) -> Client:
    """Return a client of `recollect mcp`."""
    return Client(
        StdioServerParameters(
            command=sys.executable,
            args=["-c", "from recollect.api.cli.main import main; main()", "mcp", "--user", user, *arguments],
            env={"PYTHONPATH": str(PROJECT), "PATH": os.environ["PATH"], **settings},
            cwd=folder,
        )
    )


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a call that must succeed answers; its text is the same as JSON."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    answer: dict[str, Any] = result.structured_content
    assert json.loads(text_of(result)) == answer
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return what a call that must fail in the tool says."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def profile(client: Client) -> dict[str, Any]:
    (content,) = (await client.read_resource(PROFILE)).contents
    assert isinstance(content, TextResourceContents)
    assert content.mime_type == "application/json"
    said: dict[str, Any] = json.loads(content.text)
    return said


async def found(client: Client, query: str) -> list[str]:
    return [hit["content"] for hit in (await done(client, "search_memory", query=query))["hits"]]


def put(running: Service, user: str, key: str, value: str, **fields: Any) -> dict[str, Any]:
    answer = running.http.put(f"/api/users/{user}/facts/by-key/{key}", json={"value": value, **fields})
    assert answer.status_code == 200, answer.text
    fact: dict[str, Any] = answer.json()
    return fact


@pytest.mark.parametrize("mode", ["auto", "legacy", LATEST_MODERN_VERSION])
async def test_every_tool_over_http(offline: Service, user: str, mode: str):
    put(offline, user, "city", "Rome")
    async with over_http(offline, user, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        assert [str(resource.uri) for resource in (await client.list_resources()).resources] == [PROFILE]
        added = (await done(client, "add_memory", content=f" {NUTS} ", tags=["health"]))["fact"]
        assert (added["statement"], added["key"], added["tags"]) == (NUTS, None, ["health"])
        assert await found(client, "nuts") == [NUTS, "city: Rome"]
        assert len((await done(client, "search_memory", query="nuts", top_k=1))["hits"]) == 1
        known = await done(client, "list_facts")
        assert known["facts"] == {"city": "Rome"}
        assert [fact["statement"] for fact in known["items"]] == ["city: Rome", NUTS]
        by_tools = await done(client, "list_facts", filter={"source": "tool"})
        assert ([fact["statement"] for fact in by_tools["items"]], by_tools["filter"]) == ([NUTS], {"complete": True})
        assert await profile(client) == {"facts": {"city": "Rome"}, "notes": []}
        assert await done(client, "forget", key="city") == {"forgotten": [known["items"][0]["id"]]}
        assert await done(client, "forget", id=added["id"]) == {"forgotten": [added["id"]]}
        assert await found(client, "nuts city") == []
        assert await profile(client) == {"facts": {}, "notes": []}


async def test_no_tool_takes_a_user_and_each_says_what_it_does(offline: Service, user: str):
    async with over_http(offline, user) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in tools.values():
        assert tool.description
        assert not {"user", "user_id"} & set(tool.input_schema["properties"])
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert [name for name, hint in hints.items() if hint is not None and hint.read_only_hint] == [
        "search_memory",
        "list_facts",
    ]
    assert [name for name, hint in hints.items() if hint is not None and hint.destructive_hint] == ["forget"]


async def test_two_users_at_once_each_see_their_own(offline: Service, user: str):
    other = f"{user}-2"
    fact = put(offline, user, "city", "Rome")
    put(offline, other, "city", "Oslo")
    async with over_http(offline, user) as mine, over_http(offline, other, mode="legacy") as theirs:
        for _ in range(3):
            assert await profile(mine) == {"facts": {"city": "Rome"}, "notes": []}
            assert await profile(theirs) == {"facts": {"city": "Oslo"}, "notes": []}
        await done(mine, "add_memory", content=NUTS)
        assert await found(theirs, "nuts") == ["city: Oslo"]
        assert await refused(theirs, "forget", id=fact["id"]) == "There is no such fact of this user."
        await done(theirs, "forget", key="city")
        assert (await profile(mine))["facts"] == {"city": "Rome"}


async def test_the_query_names_the_user_where_no_header_does(offline: Service, user: str):
    put(offline, user, "city", "Rome")
    put(offline, f"{user}-2", "city", "Oslo")
    async with over_http(offline, query=f"?user_id={user}") as client:
        assert (await profile(client))["facts"] == {"city": "Rome"}
    async with over_http(offline, f"{user}-2", query=f"?user_id={user}") as client:
        assert (await profile(client))["facts"] == {"city": "Oslo"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("user_id", [None, "no id", ".."])
async def test_without_a_user_it_is_an_error(offline: Service, mode: str, user_id: str | None):
    async with over_http(offline, user_id, mode=mode) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        for ask in (client.call_tool("list_facts", {}), client.read_resource(PROFILE)):
            with pytest.raises(MCPError) as caught:
                await ask
            assert caught.value.code == INVALID_PARAMS
            assert caught.value.data["code"] == "invalid_request"
            assert "X-Memory-User" in caught.value.message


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("search_memory", {}, "query is missing"),
        ("search_memory", {"query": ""}, "query must not be empty"),
        ("search_memory", {"query": "x", "top_k": 51}, "top_k Input should be less than or equal to 50"),
        ("search_memory", {"query": "x", "top_k": "5"}, "top_k Input should be a valid integer"),
        ("search_memory", {"query": "x", "user_id": "bob"}, "user_id is not a known field"),
        ("search_memory", {"query": "x", "thread_id": "a b"}, "thread_id must be 1-128 characters"),
        ("add_memory", {"content": " \n"}, "content must not be empty"),
        ("add_memory", {"content": "a\x00b"}, "content must not contain NUL"),
        ("add_memory", {"content": "x" * 2001}, "content String should have at most 2000 characters"),
        ("add_memory", {"content": "x", "tags": ["t"] * 11}, "tags List should have at most 10 items"),
        ("add_memory", {"content": "x", "tags": [""]}, "tags.0 must not be empty"),
        ("list_facts", {"limit": 0}, "limit Input should be greater than or equal to 1"),
        ("forget", {}, "key and id: give one of the two"),
        ("forget", {"key": "city", "id": "x"}, "key and id: give one of the two"),
        ("forget", {"key": "No Key"}, "key must be"),
        ("forget", {"key": "unknown"}, "There is no such fact of this user."),
        ("forget", {"id": "unknown"}, "There is no such fact of this user."),
    ],
)
async def test_what_is_wrong_with_an_argument_the_model_is_told(
    offline: Service, user: str, tool: str, arguments: dict[str, Any], problem: str
):
    async with over_http(offline, user) as client:
        assert problem in await refused(client, tool, **arguments)


async def test_what_is_not_there_is_the_protocols_error(offline: Service, user: str):
    async with over_http(offline, user) as client:
        with pytest.raises(MCPError, match="There is no such tool"):
            await client.call_tool("erase_everything", {})
        with pytest.raises(MCPError, match="There is no such resource"):
            await client.read_resource("memory://other")


async def test_a_long_list_has_pages(offline: Service, user: str):
    facts = [put(offline, user, f"key_{number}", str(number))["id"] for number in range(5)]
    async with over_http(offline, user) as client:
        listed, after = list[str](), None
        while True:
            page = await done(client, "list_facts", limit=2, **({} if after is None else {"after": after}))
            listed += [fact["id"] for fact in page["items"]]
            after = page["next_after"]
            if after is None:
                break
    assert listed == facts


async def test_documents_are_found_in_the_domains_that_are_asked_for(offline: Service, user: str):
    body = {"user_id": user, "text": "Rust is an iron oxide.", "title": "Rust", "domain": "chemistry"}
    assert offline.http.post("/api/documents", json=body).status_code == 201
    async with over_http(offline, user) as client:
        for domains, kinds in ((["chemistry"], ["document"]), (["cars"], list[str]()), (None, ["document"])):
            hits = (await done(client, "search_memory", query="rust", domains=domains))["hits"]
            assert [hit["kind"] for hit in hits] == kinds


async def test_what_a_model_notes_is_no_persons_word(offline: Service, user: str):
    async with over_http(offline, user) as client:
        first = (await done(client, "add_memory", content=NUTS))["fact"]
        again = (await done(client, "add_memory", content="the user is  allergic to nuts"))["fact"]
        assert (first["source"], first["status"], first["pinned"]) == ("tool", "active", False)
        assert again["id"] == first["id"], "the same again is known"
        assert len((await done(client, "list_facts"))["items"]) == 1


async def test_review_holds_notes_back(tmp_path: Path):
    with service(tmp_path, REVIEW="sensitive") as running:
        async with over_http(running, "ada") as client:
            waiting = (await done(client, "add_memory", content=NUTS, tags=["Health"]))["fact"]
            assert waiting["status"] == "proposed"
            assert (await done(client, "add_memory", content=NUTS))["fact"]["id"] == waiting["id"]
            assert await found(client, "nuts") == []
            approved = running.http.post(f"/api/users/ada/facts/{waiting['id']}/approve")
            assert approved.json()["status"] == "active"
            assert await found(client, "nuts") == [NUTS]


async def test_a_store_that_is_down_is_told_in_the_tool(tmp_path: Path):
    settings = {"MONGODB_URL": "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=200"}
    with service(tmp_path, **settings) as running:
        async with over_http(running, "ada") as client:
            assert "cannot serve" in await refused(client, "list_facts")
            with pytest.raises(MCPError, match="cannot serve"):
                await client.read_resource(PROFILE)


def test_foreign_pages_large_bodies_and_other_methods_are_refused(offline: Service, user: str):
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream", "X-Memory-User": user}

    def answer(method: str = "POST", body: Any = call, **more: str) -> httpx.Response:
        return offline.http.request(method, "/mcp", json=body, headers={**headers, **more})

    assert answer().status_code == 200
    assert answer(**{"MCP-Protocol-Version": LATEST_HANDSHAKE_VERSION}).status_code == 200
    assert answer(Origin="https://evil.example").json()["error"]["code"] == "foreign_origin"
    assert answer(Host="evil.example").json()["error"]["code"] == "foreign_host"
    assert answer(body={**call, "params": {"x": "y" * 2_500_000}}).status_code == 413
    assert [answer(method).status_code for method in ("GET", "DELETE", "PUT")] == [405, 405, 405]
    assert answer(body=["no", "call"]).status_code == 400
    assert answer(Accept="text/html").status_code == 406


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service that wants keys."""
    with service(tmp_path_factory.mktemp("locked"), AUTH="api_key") as running:
        yield running


def key(running: Service, role: str) -> str:
    made = recollect(running, "keys", "create", "--role", role)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


async def test_a_users_key_is_that_users_alone(locked: Service):
    mine, anyones = key(locked, "user:ada"), key(locked, "service")
    async with over_http(locked, Authorization=f"Bearer {mine}") as client:
        await done(client, "add_memory", content=NUTS)
    async with over_http(locked, "ada", Authorization=f"Bearer {anyones}") as client:
        assert await found(client, "nuts") == [NUTS]
    async with over_http(locked, "bob", Authorization=f"Bearer {mine}") as client:
        assert await found(client, "nuts") == [NUTS], "the key's own user goes before what the client names"
    async with over_http(locked, Authorization=f"Bearer {anyones}") as client:
        with pytest.raises(MCPError, match="X-Memory-User"):
            await client.call_tool("list_facts", {})
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert locked.http.post("/mcp", json=body, headers={"X-Memory-User": "ada"}).status_code == 401


async def test_stdio_through_a_running_service(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        put(running, "ada", "city", "Rome")
        async with over_stdio(tmp_path, "ada", DATA_DIR=str(running.data_dir)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            await done(client, "add_memory", content=NUTS)
            assert (await profile(client))["facts"] == {"city": "Rome"}
            assert "query is missing" in await refused(client, "search_memory")
            with pytest.raises(MCPError, match="no such tool"):
                await client.call_tool("nothing", {})
        assert [fact["statement"] for fact in running.get("/api/users/ada/facts")["items"]] == ["city: Rome", NUTS]


async def test_stdio_with_a_key_at_a_url(locked: Service, tmp_path: Path):
    settings = {"DATA_DIR": str(tmp_path / "unused"), "RECOLLECT_API_KEY": key(locked, "user:carla")}
    async with over_stdio(tmp_path, "carla", "--url", locked.url, **settings) as client:
        await done(client, "add_memory", content=NUTS)
        assert await found(client, "nuts") == [NUTS]
    assert not (tmp_path / "unused").exists()


async def test_stdio_opens_the_memory_itself_and_shares_it(tmp_path: Path):
    settings = {"DATA_DIR": str(tmp_path / "data")}
    async with over_stdio(tmp_path, "ada", **settings) as first:
        await done(first, "add_memory", content=NUTS)
        async with over_stdio(tmp_path, "ada", **settings) as second:
            assert await found(second, "nuts") == [NUTS]
        assert await found(first, "nuts") == [NUTS]


@pytest.mark.slow
async def test_stdio_goes_on_when_the_owner_of_the_data_has_gone(tmp_path: Path):
    with service(tmp_path) as running:
        async with over_stdio(tmp_path, "ada", DATA_DIR=str(running.data_dir)) as client:
            await done(client, "add_memory", content=NUTS)
            assert running.stop() == 0
            assert await found(client, "nuts") == [NUTS]


def test_stdout_is_the_protocols_alone(tmp_path: Path):
    """Even at DEBUG, and where the start fails."""
    running = Service(tmp_path, LOG_LEVEL="DEBUG")
    quiet = recollect(running, "mcp", "--user", "ada", "--url", "nonsense")
    assert (quiet.returncode, quiet.stdout) == (2, "")
    assert "--url" in quiet.stderr
    wrong = recollect(running, "mcp", "--user", "no id")
    assert (wrong.returncode, wrong.stdout) == (1, "")
