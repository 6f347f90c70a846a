"""API keys: what is stored of one, how one is made, and how one that a caller shows is checked.

A key is 256 random bits, so its SHA-256 is as hard to invert as the key is to guess: a slow hash, which protects
passwords that people choose, would only cost each request its time.
"""

import hashlib
import hmac
import re
import secrets
from abc import abstractmethod
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import check_id
from recollect.memory.values.times import iso

Role = Literal["service", "admin", "user"]

MOST_NAME_CHARACTERS = 100
_ID_BYTES, _SECRET_BYTES = 8, 32
KEY_ID_PATTERN = r"[0-9a-f]{16}"
_SHOWN = re.compile(rf"rk_({KEY_ID_PATTERN})_([A-Za-z0-9_-]{{43}})")
_USER = "user:"
EVERY = "*"
"""Ends the beginning that the ids of a tenant's users have: `acme:*`. No user's id has the character."""


@frozen
class Key:
    """The stored data of a key: `digest` is the hex SHA-256 of its secret; `user_id` is set for the role "user".

    It is one user's id, or a tenant's `acme:*`: all users whose ids begin with `acme:`. `agent_id` is the label
    that its callers write and filter by.
    """

    id: str
    digest: str
    role: Role
    user_id: str | None
    name: str | None
    created_at: datetime
    agent_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the key as the administration shows it, without its digest."""
        shown = {"id": self.id, "role": self.said_role, "name": self.name, "created_at": iso(self.created_at)}
        return shown if self.agent_id is None else {**shown, "agent_id": self.agent_id}

    @property
    def said_role(self) -> str:
        """The role as people write it: service, admin, user:<id>, or user:<beginning>*."""
        return self.role if self.user_id is None else f"{_USER}{self.user_id}"


class Keys(Protocol):
    """Keys: one record each, written once and removed when the key is revoked."""

    @abstractmethod
    async def insert(self, key: Key) -> bool:
        """Store a new key; return False, and change nothing, if its id exists."""
        ...

    @abstractmethod
    async def key(self, key_id: str) -> Key | None:
        """Return the key with this id, or None."""
        ...

    @abstractmethod
    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        """Return all keys, oldest first (ties: by id, ascending).

        `after` is the (creation, id) of the previous page's last key, which is not returned again.
        """
        ...

    @abstractmethod
    async def remove(self, key_id: str) -> bool:
        """Remove the key; return False if there is none."""
        ...

    @abstractmethod
    async def count(self, user_id: str) -> int:
        """Count this user's own keys."""
        ...

    @abstractmethod
    async def delete(self, user_id: str) -> int:
        """Remove the user's own keys and return how many there were."""
        ...


class ShownKey(NamedTuple):
    """A key as a caller shows it, split into id and secret."""

    id: str
    secret: str

    def opens(self, key: Key | None) -> bool:
        """Tell whether its secret is that of `key`.

        It compares in constant time, and takes as long where `key` is None: the time tells nothing about stored keys.
        """
        digest = _digest(self.secret)
        return hmac.compare_digest(digest, key.digest if key is not None else _NO_DIGEST) and key is not None


def new_key(role: str, *, name: str | None, now: datetime, agent_id: str | None = None) -> tuple[Key, str]:
    """Return a new key and its text, which is stored nowhere.

    Raises:
        InvalidRequest: `role` is none (see `read_role`), `name` or `agent_id` is not valid, or an administrator's key
            names an agent.
    """
    kind, user_id = read_role(role)
    key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    if agent_id is not None:
        check_id("agent_id", agent_id)
        if kind == "admin":
            problem = "must be left out of an administrator's key, which is about what all agents have written"
            raise InvalidRequest(f"agent_id {problem}.", problems=[Problem("agent_id", problem)])
    key = Key(key_id, _digest(secret), kind, user_id, check_name(name), now, agent_id)
    return key, f"rk_{key_id}_{secret}"


def read_key(text: str) -> ShownKey | None:
    """Return the id and secret in a text that a caller shows; None where the text is no key."""
    found = _SHOWN.fullmatch(text)
    return ShownKey(*found.groups()) if found else None


def is_key_id(text: str) -> bool:
    """Tell whether `text` has the form of a key's id."""
    return re.fullmatch(KEY_ID_PATTERN, text) is not None


def read_role(said: str) -> tuple[Role, str | None]:
    """Return the role and its user (None for other roles), from the form that people write.

    Raises:
        InvalidRequest: `said` is no role.
    """
    if said == "service" or said == "admin":
        return said, None
    if said.startswith(_USER):
        bound = said.removeprefix(_USER)
        check_id("role", bound.removesuffix(EVERY))
        return "user", bound
    problem = "must be service, admin or user:<id>; user:<beginning>* is for all users whose ids begin so"
    raise InvalidRequest(f"role {problem}.", problems=[Problem("role", problem)])


def check_name(name: str | None) -> str | None:
    """Return the name of a key if it is None or one line of 1-100 characters.

    Raises:
        InvalidRequest: it is neither.
    """
    if name is None or (1 <= len(name) <= MOST_NAME_CHARACTERS and name.isprintable()):
        return name
    problem = f"must have 1 to {MOST_NAME_CHARACTERS} printable characters"
    raise InvalidRequest(f"name {problem}.", problems=[Problem("name", problem)])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


_NO_DIGEST = "0" * 64
