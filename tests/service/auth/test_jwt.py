import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fakes.issuer import FakeIssuer
from tests.service.support.locked import bearer, caller, owner_token, said
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused

SECRET = "a-secret-of-at-least-32-characters"
RULES = {
    "JWT_ISSUER": "https://id.example/",
    "JWT_AUDIENCE": "recollect",
    "JWT_ADMIN_CLAIM": "https://id.example/roles:admin",
}


def claims(subject: Any = "ada", **more: Any) -> dict[str, Any]:
    """Return a good token's claims; None among `more` takes one away."""
    given = {"sub": subject, "iss": RULES["JWT_ISSUER"], "aud": "recollect", "exp": int(time.time()) + 600, **more}
    return {name: value for name, value in given.items() if value is not None}


def token(subject: Any = "ada", *, secret: str = SECRET, algorithm: str = "HS256", **more: Any) -> str:
    return jwt.encode(claims(subject, **more), secret, algorithm)


def by_hand(header: dict[str, Any], payload: bytes, signature: bytes | None = None) -> str:
    """Return a token that no library makes; signed with the secret unless a signature is given."""
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (json.dumps(header).encode(), payload)]
    signed = b".".join(parts)
    made = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest() if signature is None else signature
    return (signed + b"." + base64.urlsafe_b64encode(made).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service that shares a secret with the issuer."""
    with service(tmp_path_factory.mktemp("shared"), AUTH="jwt", JWT_SECRET=SECRET, **RULES) as running:
        yield running


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeIssuer]:
    with FakeIssuer() as made:
        made.add("first")
        made.add("second", curve=True)
        yield made


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory, issuer: FakeIssuer) -> Iterator[Service]:
    """Yield a service that fetches the issuer's public keys."""
    with service(tmp_path_factory.mktemp("public"), AUTH="jwt", JWT_JWKS_URL=issuer.url, **RULES) as running:
        yield running


def asked(running: Service, shown: str) -> httpx.Response:
    return running.http.get("/api/threads", headers=bearer(shown))


def check_is_refused(running: Service, shown: str) -> None:
    error = refused(asked(running, shown), 401, "unauthorized")
    assert error["message"] == "The key or token is not valid; send a valid one as `Authorization: Bearer …`."


def test_a_token_is_bound_to_its_subject(shared: Service, user: str) -> None:
    with caller(shared, token(user)) as client:
        assert said(client, "I live in Oslo.")["user_id"] == user
        assert len(client.get("/api/threads").json()["items"]) == 1
        refused(client.get("/api/threads", params={"user_id": "bob"}), 404, "not_found")
        refused(client.get("/metrics"), 403, "forbidden")


@pytest.mark.parametrize(
    ("subject", "user_id"), [("auth0|5f", "auth0@7c5f"), ("ada@example.com", "ada@example.com"), ("Zoë", "Zo@c3@ab")]
)
def test_a_subject_becomes_an_id(shared: Service, subject: str, user_id: str) -> None:
    with caller(shared, token(subject)) as client:
        assert client.get(f"/api/users/{user_id}/facts").status_code == 200
        refused(client.get("/api/users/ada/facts"), 404, "not_found")


@pytest.mark.parametrize("roles", ["admin", ["reader", "admin"]])
def test_the_admin_claim_makes_an_administrator(shared: Service, user: str, roles: Any) -> None:
    with caller(shared, token(**{"https://id.example/roles": roles})) as client:
        assert client.get("/metrics").status_code == 200
        assert said(client, "Hello.", user_id=user)["user_id"] == user
        assert client.get("/api/threads").status_code == 422


@pytest.mark.parametrize("roles", ["administrator", ["reader"], [["admin"]], {"admin": True}, True, "", ["Admin"]])
def test_another_value_of_the_claim_does_not(shared: Service, roles: Any) -> None:
    refused(shared.http.get("/metrics", headers=bearer(token(**{"https://id.example/roles": roles}))), 403, "forbidden")


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": None},
        {"exp": 1},
        {"exp": "soon"},
        {"nbf": 99_999_999_999},
        {"iat": 99_999_999_999},
        {"aud": None},
        {"aud": "others"},
        {"aud": ["others", 7]},
        {"iss": None},
        {"iss": "https://other.example/"},
        {"iss": ["https://id.example/"]},
        {"sub": None},
        {"sub": ""},
        {"sub": ".."},
        {"sub": "x" * 129},
        {"sub": "a\nb"},
        {"sub": ["ada"]},
        {"sub": {"ada": 1}},
    ],
    ids=str,
)
def test_a_token_that_says_something_wrong_is_refused(shared: Service, wrong: dict[str, Any]) -> None:
    said_wrong = {name: value for name, value in {**claims(), **wrong}.items() if value is not None}
    check_is_refused(shared, by_hand({"alg": "HS256"}, json.dumps(said_wrong).encode()))


def test_a_token_may_be_a_few_seconds_late_and_name_several_audiences(shared: Service) -> None:
    assert asked(shared, token(exp=int(time.time()) - 2)).status_code == 200
    assert asked(shared, token(aud=["others", "recollect"])).status_code == 200
    check_is_refused(shared, token(exp=int(time.time()) - 60))


def test_a_token_that_nobody_signed_is_refused(shared: Service) -> None:
    good = json.dumps(claims()).encode()
    whole = token()
    head, body, signature = whole.split(".")
    broken = [
        jwt.encode(claims(), "", "none"),
        by_hand({"alg": "none"}, good, b""),
        by_hand({"alg": "None"}, good, b""),
        by_hand({"alg": ""}, good),
        by_hand({}, good),
        by_hand({"alg": ["HS256"]}, good),
        by_hand({"alg": "HS384"}, good),
        by_hand({"alg": "RS256"}, good),
        by_hand({"alg": "HS256"}, good, b"x" * 32),
        by_hand({"alg": "HS256", "kid": 7}, good),
        by_hand({"alg": "HS256", "crit": ["exp"]}, good),
        by_hand({"alg": "HS256", "b64": False}, good),
        by_hand({"alg": "HS256"}, b"[]"),
        by_hand({"alg": "HS256"}, b"{"),
        by_hand({"alg": "HS256"}, b"[" * 10_000),
        token(secret=SECRET.upper()),
        token(secret=SECRET * 2, algorithm="HS512"),
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}..{signature}",
        f"{head}.{token('bob').split('.')[1]}.{signature}",
        f"{whole}.{signature}",
        "." * 50,
        "eyJ",
        "x" * 20_000,
    ]
    for each in broken:
        check_is_refused(shared, each)
    assert asked(shared, whole).status_code == 200
    assert whole not in shared.log
    assert SECRET not in shared.log
    assert "reason=ExpiredSignatureError" in shared.log or "reason=InvalidAlgorithmError" in shared.log


def test_keys_and_tokens_are_not_mixed_up(shared: Service) -> None:
    made = shared.http.post("/api/admin/keys", json={"role": "admin"}, headers=bearer(owner_token(shared)))
    check_is_refused(shared, made.json()["key"])


def test_public_keys_are_fetched_and_kept(public: Service, issuer: FakeIssuer) -> None:
    for _ in range(3):
        assert asked(public, issuer.signed("first", claims())).status_code == 200
        assert asked(public, issuer.signed("second", claims(), algorithm="ES256")).status_code == 200
        assert asked(public, issuer.signed("first", claims(), shown="")).status_code == 200, "the only one of its kind"
    assert issuer.fetches == 1


def test_what_the_public_key_does_not_check_is_refused(public: Service, issuer: FakeIssuer) -> None:
    pem = issuer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good = json.dumps(claims()).encode()
    for confused in (pem, pem.strip(), json.dumps(issuer.public("first")).encode(), b""):
        for header in ({"alg": "HS256", "kid": "first"}, {"alg": "RS256", "kid": "first"}):
            parts = by_hand(header, good).rsplit(".", 1)[0]
            signature = hmac.new(confused, parts.encode(), hashlib.sha256).digest()
            check_is_refused(public, by_hand(header, good, signature))
    check_is_refused(public, issuer.signed("first", claims(), algorithm="RS512"))
    check_is_refused(public, issuer.signed("first", claims(), shown="second"))
    check_is_refused(public, issuer.signed("second", claims(), shown="first", algorithm="ES256"))
    check_is_refused(public, issuer.signed("first", claims(exp=1)))


def test_unknown_keys_cause_no_flood_of_fetches(public: Service, issuer: FakeIssuer) -> None:
    assert asked(public, issuer.signed("first", claims())).status_code == 200
    before = issuer.fetches
    for number in range(20):
        check_is_refused(public, issuer.signed("first", claims(), shown=f"unknown-{number}"))
    assert issuer.fetches - before <= 1 + 20 // 10


def test_an_issuer_that_cannot_be_reached_is_not_the_callers_fault(tmp_path: Path) -> None:
    with FakeIssuer() as down:
        down.add("first")
        down.status = 500
        with service(tmp_path, AUTH="jwt", JWT_JWKS_URL=f"{down.url}?secret=hush") as running:
            for _ in range(3):
                refused(asked(running, down.signed("first", claims())), 503, "issuer_unavailable")
            check_is_refused(running, "nonsense")
            assert running.http.get("/health/ready").status_code == 200
            assert running.http.get("/api/admin/keys", headers=bearer(owner_token(running))).status_code == 200
            assert down.fetches == 1
            assert "hush" not in running.log
            assert "action=issuer_unavailable" in running.log


@pytest.mark.parametrize("depth", [500, 2_000, 5_500])
def test_a_token_that_is_nested_too_deeply_is_refused(shared: Service, depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    for shown in (by_hand({"alg": "HS256"}, nested), by_hand({"alg": "HS256"}, b'{"sub": ' + nested + b"}")):
        refused(shared.http.get("/api/threads", headers=bearer(shown)), 401, "unauthorized")
    header = base64.urlsafe_b64encode(b'{"alg": "HS256", "x": ' + nested + b"}").rstrip(b"=").decode()
    refused(shared.http.get("/api/threads", headers=bearer(f"{header}.e30.AAAA")), 401, "unauthorized")
