"""Defines a finding: what one clause says of the user, before it is compared with known facts."""

import re
from zlib import crc32

from recollect.memory.language.folding import nfkd
from recollect.memory.language.punctuation import SENTENCE_ENDS
from recollect.memory.values.frozen import frozen

MOST_VALUE_CHARACTERS = 120
_MOST_KEY_CHARACTERS = 64
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_AFTERTHOUGHT = re.compile(
    r"[,;]? \b(?:now|nowadays|currently|today|yesterday|tonight|recently|lately|at the moment|at present|these days"
    r"|again|any ?more|any longer|too|as well|though|actually|instead|please|by the way|btw|a lot|very much|so much"
    r"|right now|by profession|by trade"
    r"|last (?:night|week|month|year|summer|autumn|fall|winter|spring|monday|friday|january|december)"
    r"|this (?:morning|week|month|year|summer|autumn|fall|winter|spring)"
    r"|(?:about |around )?[\w-]+ (?:days?|weeks?|months?|years?) ago"
    r"|(?:since|until|till|because|but|where|while|when|although|especially|which|not|more than|if) .*"
    r"|for (?:\d+|a|an|two|three|four|five|six|ten|many|several|some|over|about|the last|the past) .*"
    r"|(?:from|starting|beginning|as of) (?:in |on )?(?:january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d|today|tomorrow|next|now)\b.*"
    r"|and (?:i|i'm|my)\b.*)$",
    re.IGNORECASE,
)


@frozen
class Extracted:
    """A finding: `key` is `value`, or no longer is where `ends` is true. `evidence` is the clause."""

    key: str
    value: str
    evidence: str
    ends: bool = False


def slug(text: str) -> str:
    """Return `text` as snake_case without accents; a digest where no Latin letter is left."""
    spelled = text.replace("'s ", " ").replace("'", "").replace("+", " plus ").replace("#", " sharp ")
    plain = nfkd(spelled).encode("ascii", "ignore").decode()
    return _NO_SLUG.sub("_", plain.lower()).strip("_") or f"{crc32(text.encode('utf-8', 'replace')):08x}"


def free_key(text: str, prefix: str = "") -> str:
    """Return a valid fact key made of free words, after `prefix`."""
    key = prefix + slug(text)
    return (key if key[0].isalpha() else f"my_{key}")[:_MOST_KEY_CHARACTERS].rstrip("_")


def trimmed(text: str) -> str:
    """Return a value without trailing times, afterthoughts and punctuation; "" if it is too long for a value."""
    for _ in range(4):
        shorter = _AFTERTHOUGHT.sub("", text.strip().rstrip(f" ,;:){SENTENCE_ENDS}").lstrip(" (")).strip()
        if shorter == text:
            break
        text = shorter
    unquoted = text.strip('"\u201c\u201d\u00ab\u00bb ')
    return unquoted if len(unquoted) <= MOST_VALUE_CHARACTERS else ""
