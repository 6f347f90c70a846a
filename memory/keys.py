"""Keys that callers show: what is stored of one, how one is made, and how one that was shown is checked.

A key is 256 random bits, so its SHA-256 is as hard to turn back as the key is to guess: a slow hash, which makes up for
what people choose, would only cost each request its time.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from memory.errors import InvalidRequest, Problem
from memory.scope import check_id
from memory.times import iso

Role = Literal["service", "admin", "user"]

MOST_NAME_CHARACTERS = 100
_ID_BYTES, _SECRET_BYTES = 8, 32
KEY_ID_PATTERN = r"[0-9a-f]{16}"
_SHOWN = re.compile(rf"rk_({KEY_ID_PATTERN})_([A-Za-z0-9_-]{{43}})")
_USER = "user:"


@dataclass(frozen=True, slots=True)
class Key:
    """What is stored of a key: `digest` is the hex SHA-256 of its secret, `user_id` the one user of a user's key."""

    id: str
    digest: str
    role: Role
    user_id: str | None
    name: str | None
    created_at: datetime

    def as_json(self) -> dict[str, Any]:
        """As the administration shows it: never the digest."""
        return {"id": self.id, "role": self.said_role, "name": self.name, "created_at": iso(self.created_at)}

    @property
    def said_role(self) -> str:
        """The role as people write it: service, admin, or user:<id>."""
        return self.role if self.user_id is None else f"{_USER}{self.user_id}"


class Keys(Protocol):
    """Keys: one document each, which is written once and removed when it is revoked."""

    async def insert(self, key: Key) -> bool:
        """Store a new key; False, and nothing changed, if its id exists."""
        ...

    async def key(self, key_id: str) -> Key | None:
        """The key of this id, or None."""
        ...

    async def page(self, *, limit: int, after: tuple[datetime, str] | None = None) -> list[Key]:
        """All keys, oldest first (ties: by id), starting behind the (creation, id) of the last page's last one."""
        ...

    async def remove(self, key_id: str) -> bool:
        """Remove the key; False if there is none."""
        ...

    async def count(self, user_id: str) -> int:
        """How many keys are this user's own."""
        ...

    async def delete(self, user_id: str) -> int:
        """Remove the user's own keys and say how many there were."""
        ...


class ShownKey(NamedTuple):
    """A key as a caller shows it, taken apart."""

    id: str
    secret: str

    def opens(self, key: Key | None) -> bool:
        """Whether it is `key`; as much work where there is no such key."""
        digest = _digest(self.secret)
        return hmac.compare_digest(digest, key.digest if key is not None else _NO_DIGEST) and key is not None


def new_key(role: str, *, name: str | None, now: datetime) -> tuple[Key, str]:
    """A new key and its text, which is known to nobody afterwards.

    Raises:
        InvalidRequest: `role` is none of service, admin and user:<id>, or the name is none.
    """
    kind, user_id = read_role(role)
    key_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    return Key(key_id, _digest(secret), kind, user_id, check_name(name), now), f"rk_{key_id}_{secret}"


def read_key(text: str) -> ShownKey | None:
    """The key that a caller shows; None where the text is none."""
    found = _SHOWN.fullmatch(text)
    return ShownKey(*found.groups()) if found else None


def is_key_id(text: str) -> bool:
    """Whether a key may have this id."""
    return re.fullmatch(KEY_ID_PATTERN, text) is not None


def read_role(said: str) -> tuple[Role, str | None]:
    """The role and its user, as people write it.

    Raises:
        InvalidRequest: it is none.
    """
    if said == "service" or said == "admin":
        return said, None
    if said.startswith(_USER):
        return "user", check_id("role", said.removeprefix(_USER))
    problem = "must be service, admin or user:<id>"
    raise InvalidRequest(f"role {problem}.", problems=[Problem("role", problem)])


def check_name(name: str | None) -> str | None:
    """The name of a key: a line of 1-100 characters, or none.

    Raises:
        InvalidRequest: it is none.
    """
    if name is None or (1 <= len(name) <= MOST_NAME_CHARACTERS and name.isprintable()):
        return name
    problem = f"must have 1 to {MOST_NAME_CHARACTERS} printable characters"
    raise InvalidRequest(f"name {problem}.", problems=[Problem("name", problem)])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


_NO_DIGEST = "0" * 64
