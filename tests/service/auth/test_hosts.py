from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.support.running import Service, service
from tests.service.support.shapes import refused
from tests.service.support.stopped_start import stopped_start


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with names of its own, on every address."""
    settings = {"ALLOWED_HOSTS": "Memory.example, other.test", "HOST": "0.0.0.0", "ALLOW_INSECURE": "true"}
    with service(tmp_path_factory.mktemp("named"), **settings) as running:
        yield running


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.9", "", "["],
)
@pytest.mark.parametrize("path", ["/health", "/openapi.json", "/nothing"])
def test_a_foreign_host_is_refused(offline: Service, host: str, path: str) -> None:
    refused(offline.http.get(path, headers={"host": host}), 421, "foreign_host")


def test_a_foreign_host_stores_nothing(offline: Service, user: str) -> None:
    body = {"user_id": user, "thread_id": "t1", "message": "Hello."}
    refused(offline.http.post("/api/agent", json=body, headers={"host": "evil.example"}), 421, "foreign_host")
    page = {"origin": "http://evil.example"}
    refused(offline.http.post("/api/agent", json=body, headers=page), 403, "foreign_origin")
    assert offline.get("/api/threads/t1/messages", user_id=user)["items"] == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:9999", "localhost:65535"])
def test_loopback_names_with_any_port_are_served(offline: Service, host: str) -> None:
    assert offline.http.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example", "file://", "", "evil.example:8000"]
)
def test_a_foreign_origin_is_refused(offline: Service, origin: str) -> None:
    refused(offline.http.get("/health", headers={"origin": origin}), 403, "foreign_origin")


@pytest.mark.parametrize("port", ["", ":3000", ":80", ":443"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_another_page_of_this_machine_is_foreign_too(offline: Service, host: str, port: str, user: str) -> None:
    for scheme in ("http", "https"):
        page = {"Origin": f"{scheme}://{host}{port}"}
        refused(offline.http.get("/health", headers=page), 403, "foreign_origin")
    sent = offline.http.post("/api/import", content=b"", headers=page)
    refused(sent, 403, "foreign_origin")
    refused(offline.http.delete(f"/api/users/{user}", headers=page), 403, "foreign_origin")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:{port}", "http://localhost:{port}"),
        ("LOCALHOST:{port}", "https://localhost:{port}"),
        ("127.0.0.1:80", "http://127.0.0.1"),
        ("[::1]", "https://[::1]:443"),
        ("localhost", "https://localhost"),
    ],
)
def test_the_services_own_page_is_served(offline: Service, host: str, origin: str) -> None:
    headers = {"Host": host.format(port=offline.port), "Origin": origin.format(port=offline.port)}
    assert offline.http.get("/health", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", "http://127.0.0.1"),
        ("localhost:8000", "http://localhost:8001"),
        ("localhost:443", "http://localhost"),
        ("localhost", "ftp://localhost"),
        ("localhost", "http://localhost/"),
        ("localhost", "http://a@localhost"),
        ("localhost", "localhost"),
        ("localhost", "http://localhost:x"),
        ("localhost", "http://localhost http://evil.example"),
    ],
)
def test_what_is_not_quite_the_own_page_is_refused(offline: Service, host: str, origin: str) -> None:
    refused(offline.http.get("/health", headers={"Host": host, "Origin": origin}), 403, "foreign_origin")


def test_two_origins_pass_only_if_both_do(offline: Service) -> None:
    own, evil = ("Origin", offline.url), ("Origin", "http://evil.example")
    for headers in ([own, evil], [evil, own]):
        refused(offline.http.get("/health", headers=headers), 403, "foreign_origin")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "else"])
def test_without_an_origin_the_browser_says_where_a_request_is_from(offline: Service, site: str, user: str) -> None:
    for mode in ("no-cors", "cors", "websocket", ""):
        said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
        refused(offline.http.get("/api/threads", params={"user_id": user}, headers=said), 403, "foreign_origin")
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    refused(offline.http.get("/health", headers={**link, "Sec-Fetch-Dest": "iframe"}), 403, "foreign_origin")
    assert offline.http.get("/health", headers=link).status_code == 200
    for method in ("POST", "DELETE", "HEAD", "OPTIONS"):
        assert offline.http.request(method, "/health", headers=link).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_own_page_and_the_address_bar_need_no_origin(offline: Service, site: str) -> None:
    said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"}
    assert offline.http.get("/health", headers=said).status_code == 200


def test_pages_of_allowed_hosts_are_served_at_every_port(named: Service) -> None:
    for origin in ("https://memory.example:8443", "http://OTHER.test", "http://memory.example"):
        assert named.http.get("/health", headers={"origin": origin}).status_code == 200
    for origin in ("http://0.0.0.0:3000", "http://localhost:3000"):
        refused(named.http.get("/health", headers={"origin": origin}), 403, "foreign_origin")


@pytest.mark.parametrize("name", ["memory.example", "MEMORY.EXAMPLE:8000", "other.test", "0.0.0.0", "localhost"])
def test_allowed_hosts_are_served(named: Service, name: str) -> None:
    headers = {"host": name, "origin": f"https://{name}"}
    assert named.http.get("/health", headers=headers).status_code == 200


def test_other_hosts_are_refused_beside_the_allowed(named: Service) -> None:
    refused(named.http.get("/health", headers={"host": "sub.memory.example"}), 421, "foreign_host")
    refused(named.http.get("/health", headers={"origin": "http://example"}), 403, "foreign_origin")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_an_open_address_stops_the_start(tmp_path: Path, host: str) -> None:
    said = stopped_start(tmp_path, HOST=host)
    assert f"HOST {host} is reachable from other machines" in said
    assert "ALLOW_INSECURE=true" in said
    assert not (tmp_path / "data").exists()
