"""Maps a token's subject claim to a user id.

Subjects are escaped: `auth0|ada` is the user `auth0@7cada`, also where an id could have the character itself.
"""

import re

from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.scope import check_id

# Ids may have more characters now (+ | ~ =); here they stay escaped, so that every subject keeps its user.
_OUTSIDE = re.compile(r"[^A-Za-z0-9._:@-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# An `@` before two digits that read as such an escape: of a character outside the alphabet, of the `@` (written so
# here), or of the first two bytes of a longer character.
_LIKE_AN_ESCAPE = re.compile(r"@(?=2[0-9a-cf]|3[b-f]|40|5[b-e]|60|7[b-e]|[c-f][0-9a-f]@[89ab][0-9a-f])")


def user_of_claim(subject: object) -> str | None:
    """Return the id of the claim's user; None where the claim cannot name one.

    Each character but letters, digits and `._:@-` becomes `@xx` for each byte of its UTF-8. An `@` stays, but for the
    rare one that would read as such an escape, which becomes `@40`: so two subjects never share an id. Control
    characters, texts without UTF-8 and ids over 128 characters name nobody. An integer becomes its digits.
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
