"""The user that a token's claim names, as an id.

Issuers' subjects have characters that ids do not: `auth0|ada` is the user `auth0@7cada`.
"""

import re

from memory.errors import InvalidRequest
from memory.scope import check_id

_OUTSIDE = re.compile(r"[^A-Za-z0-9._:@-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# An `@` that stands before two digits as if it were such an escape itself: of a character outside the alphabet, of the
# `@` (so written here), or of the first two bytes of a longer character.
_LIKE_AN_ESCAPE = re.compile(r"@(?=2[0-9a-cf]|3[b-f]|40|5[b-e]|60|7[b-e]|[c-f][0-9a-f]@[89ab][0-9a-f])")


def user_of(subject: object) -> str | None:
    """The id of the user whom the claim names; None where it names nobody that could have one.

    Each character outside the ids' alphabet becomes `@xx` for each byte of its UTF-8. An `@` is in the alphabet and
    stays, but for the rare one that would read as such an escape, which becomes `@40`: so two subjects never share an
    id. Control characters, texts without UTF-8 and ids over 128 characters name nobody. An integer is its digits.
    """
    if isinstance(subject, int) and not isinstance(subject, bool):
        subject = str(subject)
    if not isinstance(subject, str) or _CONTROL.search(subject):
        return None
    try:
        return check_id("user_id", _OUTSIDE.sub(_escape, _LIKE_AN_ESCAPE.sub("@40", subject)))
    except (InvalidRequest, UnicodeEncodeError):
        return None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"@{byte:02x}" for byte in found.group().encode())
