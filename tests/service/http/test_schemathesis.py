"""Every operation of the OpenAPI text, asked for what it allows and what not: no 5xx, no answer beside its schema."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.support.locked import bearer, made_key
from tests.service.support.running import Service, service

pytestmark = pytest.mark.slow

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HEALTH_CHECKS: list[Any] = list(HealthCheck)
WITHOUT_KEY = {"/health", "/health/ready"}
SLOW = [pytest.mark.slow, pytest.mark.timeout(1800)]
FEW, MANY = 2, 10
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]

Operation = schemathesis.APIOperation[Any, Any, Any]
Case = schemathesis.Case


@schemathesis.serializer("application/x-ndjson", "application/zip")
def _as_it_is(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("fuzzed"), AUTH="api_key", MEMORY_WAIT_SECONDS="1") as running:
        yield running


def described(running: Service) -> list[Operation]:
    """Return the operations of a service."""
    schema: Any = schemathesis.openapi.from_dict(running.get("/openapi.json"))
    schema.config.update(base_url=running.url)
    return [found.ok() for found in schema.get_all_operations()]


def asked(operation: Operation, mode: GenerationMode, examples: int, ask: Callable[[Case], None]) -> None:
    """Ask for so many requests of one operation, the same at every run; none where nothing can be said wrongly."""

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=HEALTH_CHECKS,
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        ask(case)

    with contextlib.suppress(Unsatisfiable):
        run()


def fuzzed(running: Service, mode: GenerationMode, examples: int, headers: dict[str, str]) -> set[str]:
    """Ask every operation, and check each answer against its description; which operations have answered."""
    answered: set[str] = set()

    def ask(case: Case) -> None:
        case.call_and_validate(checks=CHECKS, headers=headers)
        answered.add(f"{case.method} {case.path}")

    for operation in described(running):
        asked(operation, mode, examples, ask)
    return answered


@pytest.mark.parametrize(
    ("role", "mode", "examples"),
    [
        pytest.param("admin", GenerationMode.POSITIVE, FEW, id="few"),
        pytest.param("admin", GenerationMode.POSITIVE, MANY, id="administrator", marks=SLOW),
        pytest.param("admin", GenerationMode.NEGATIVE, MANY, id="administrator, wrongly", marks=SLOW),
        pytest.param("user:ada", GenerationMode.POSITIVE, MANY, id="user", marks=SLOW),
        pytest.param("user:ada", GenerationMode.NEGATIVE, MANY, id="user, wrongly", marks=SLOW),
    ],
)
def test_nothing_breaks_with_keys(locked: Service, role: str, mode: GenerationMode, examples: int) -> None:
    key = made_key(locked, role)["key"]
    check_coverage(fuzzed(locked, mode, examples, bearer(key)), locked, mode)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
def test_nothing_breaks_without_auth(offline: Service, mode: GenerationMode) -> None:
    check_coverage(fuzzed(offline, mode, MANY, {}), offline, mode)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
def test_without_a_key_nothing_is_answered_whatever_is_asked(locked: Service, mode: GenerationMode) -> None:
    def ask(case: Case) -> None:
        answer = case.call()
        case.validate_response(answer, checks=CHECKS)
        assert (answer.status_code == 401) == (case.path not in WITHOUT_KEY), case.as_curl_command()

    for operation in described(locked):
        asked(operation, mode, FEW, ask)


def check_coverage(answered: set[str], running: Service, mode: GenerationMode) -> None:
    """Check that all have answered, or for wrong requests nearly all: some have nothing that could be said wrongly."""
    labels = {f"{operation.method.upper()} {operation.path}" for operation in described(running)}
    assert answered <= labels
    assert len(labels - answered) <= (8 if mode is GenerationMode.NEGATIVE else 0), labels - answered
    assert "action=request_broke" not in running.log
