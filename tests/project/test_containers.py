import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PINNED = re.compile(r"^[a-z0-9./-]+:v?\d+\.\d+\.\d+(-[a-z0-9.-]+)?@sha256:[0-9a-f]{64}$")


def test_every_image_is_pinned_to_a_version_and_its_digest() -> None:
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert len(images) == 4
    assert [image for image in images if not PINNED.match(image)] == []


def test_qdrant_knows_the_scoped_idf() -> None:
    version = SERVICES["qdrant"]["image"].partition("@")[0].rpartition(":v")[2]

    assert tuple(int(part) for part in version.split(".")) >= (1, 19, 0)


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"worker"}))
def test_every_service_is_checked_and_restarted_and_keeps_its_data(name: str) -> None:
    service = SERVICES[name]

    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["restart"] == "unless-stopped"
    volume, _, folder = service["volumes"][0].partition(":")
    assert volume in COMPOSE["volumes"]
    assert folder == {"app": "/data", "mongo": "/data/db", "qdrant": "/qdrant/storage"}[name]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_writes_to_its_volume_alone_and_has_no_rights(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert "/tmp" in [folder.partition(":")[0] for folder in service["tmpfs"]]


def test_only_the_app_is_published_and_on_loopback_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"app": ["127.0.0.1:8000:8000"]}


def test_the_app_waits_for_its_servers_and_knows_them() -> None:
    app = SERVICES["app"]

    assert {name: wait["condition"] for name, wait in app["depends_on"].items()} == {
        "mongo": "service_healthy",
        "qdrant": "service_healthy",
    }
    assert app["environment"]["MONGODB_URL"] == "mongodb://mongo:27017"
    assert app["environment"]["QDRANT_URL"] == "http://qdrant:6333"
    assert app["environment"]["ALLOW_INSECURE"] == "true"


def test_the_worker_is_an_example_on_the_apps_servers_that_answers_nobody() -> None:
    app, worker = SERVICES["app"], SERVICES["worker"]

    assert worker["command"] == ["recollect", "worker"]
    assert worker["profiles"] == ["worker"], "it starts only when it is asked for"
    assert worker["depends_on"] == app["depends_on"]
    assert worker["env_file"] == app["env_file"], "both need the same models"
    for name in ("MONGODB_URL", "QDRANT_URL"):
        assert worker["environment"][name] == app["environment"][name]
    assert not {"ports", "volumes"} & worker.keys(), "any number of them run side by side"
    assert worker["restart"] == "unless-stopped"


def test_the_image_runs_as_nobody_special_and_from_the_lock() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    (user,) = re.findall(r"^USER (\S+)", last, re.MULTILINE)

    assert user not in {"root", "0"}
    assert last.index("USER ") < last.index("CMD [")
    assert "--require-hashes --requirement requirements.lock" in DOCKERFILE
    assert 'CMD ["recollect", "serve", "--host", "0.0.0.0"]' in last
    assert "HEALTHCHECK" in last


def test_every_file_the_image_is_built_from_exists() -> None:
    allowed = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)

    assert {
        "LICENSE",
        "README.md",
        "api",
        "graph",
        "memory",
        "pyproject.toml",
        "recollect",
        "requirements.lock",
        "settings.py",
    } == set(allowed)
    assert [name for name in allowed if not (ROOT / name).exists()] == []


def test_qdrants_check_is_a_script_that_bash_can_read() -> None:
    script = SERVICES["qdrant"]["healthcheck"]["test"][-1].replace("$$", "$")

    assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
