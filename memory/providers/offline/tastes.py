"""Reads what a user likes and dislikes: one finding for each thing."""

import re

from recollect.memory.providers.offline.clauses import Clause
from recollect.memory.providers.offline.finding import Extracted, free_key, trimmed

LIKES, DISLIKES = "likes_", "dislikes_"

_ADVERB = r"(?:also |really |still |absolutely |just |always |actually |do |now |quite |particularly |especially )*"
_LIKED = re.compile(
    rf"(?:i {_ADVERB}(?:like|love|enjoy|adore)|(?:i'm|i am) {_ADVERB}(?:into|fond of|a (?:big |huge )?fan of)"
    r"|ich mag|ich liebe|j'aime|me gusta|me gustan) (?P<things>.+)",
    re.IGNORECASE,
)
_DISLIKED = re.compile(
    rf"(?:i {_ADVERB}(?:hate|dislike|detest|despise|can't stand|cannot stand)"
    rf"|i {_ADVERB}(?:don't|do not|never) {_ADVERB}(?:like|enjoy|love)|i'm not (?:into|fond of|a fan of)) "
    r"(?P<things>.+)",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(
    r"(?:i no longer (?P<verb>like|love|enjoy|hate|dislike)|i (?:don't|do not) (?P<verb2>like|love|enjoy|hate|dislike)"
    r"|i (?P<verb3>stopped) (?:liking|loving|enjoying)) (?P<things>.+)",
    re.IGNORECASE,
)
_ANY_MORE = re.compile(r" (?:any ?more|any longer)\b[ .,!]*", re.IGNORECASE)
_LISTED = re.compile(r",? (?:and|or) (?:also )?| & |, ")
_NO_THINGS = re.compile(
    r"(?:you|your|it|its|that|this|these|those|him|her|his|them|their|how|when|what|where|who|my|me|myself|one|both|which"
    r"|the idea|the way|the fact|being|having|to be|to know|to think|to see|to hear|to say|to thank|to ask)\b",
    re.IGNORECASE,
)
_MOST_WORDS = 6
_MOST_THINGS = 10


def read_tastes(clause: Clause) -> list[Extracted]:
    """Return things that the clause calls liked, disliked, or no longer so; a dislike ends a like and vice versa."""
    found = _NO_LONGER.match(clause.text)
    if found and (found["verb"] or found["verb3"] or _ANY_MORE.search(clause.text)):
        verb = (found["verb"] or found["verb2"] or "like").casefold()
        prefix = DISLIKES if verb in {"hate", "dislike"} else LIKES
        return [Extracted(_key(prefix, thing), thing, clause.evidence, ends=True) for thing in _things(found["things"])]
    for pattern, prefix, other in ((_DISLIKED, DISLIKES, LIKES), (_LIKED, LIKES, DISLIKES)):
        found = pattern.match(clause.text)
        if found:
            return [
                finding
                for thing in _things(found["things"])
                for finding in (
                    Extracted(_key(other, thing), thing, clause.evidence, ends=True),
                    Extracted(_key(prefix, thing), thing, clause.evidence),
                )
            ]
    return []


def _key(prefix: str, thing: str) -> str:
    return free_key(thing.removeprefix("to ").removeprefix("the "), prefix)


def _things(text: str) -> list[str]:
    listed = [trimmed(_ANY_MORE.sub(" ", item)).removeprefix("especially ") for item in _LISTED.split(text)]
    return [
        thing for thing in listed if thing and not _NO_THINGS.match(thing) and len(thing.split(" ")) <= _MOST_WORDS
    ][:_MOST_THINGS]
