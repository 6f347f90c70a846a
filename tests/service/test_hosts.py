from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import Service, service
from tests.service.shapes import refused
from tests.service.stopped_start import stopped_start


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with names of its own, on every address."""
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


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"])
def test_a_loopback_origin_is_served(offline: Service, origin: str) -> None:
    assert offline.http.get("/health", headers={"origin": origin}).status_code == 200


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
