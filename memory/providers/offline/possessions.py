"""Reads what belongs to a user: "My dog's name is Rex", "My favourite colour is blue", "I have two children"."""

import re

from recollect.memory.providers.offline.clauses import Clause
from recollect.memory.providers.offline.finding import Extracted, free_key, trimmed
from recollect.memory.providers.offline.vocabulary import NO_THINGS, NO_VALUES

_MINE = tuple(
    re.compile(rf"my (?P<thing>[^,.:;!?]{{1,60}}?){verb} (?P<called>called |named )?(?P<value>.+)", re.IGNORECASE)
    for verb in ("(?: is| are)", "'s")
)
_HAVE_NAMED = re.compile(
    r"i(?:'ve| have)?(?: have| got| also have)* (?:an?|one) (?P<thing>[a-z -]{1,40}?) (?:named|called|whose name is) "
    r"(?P<value>.+)",
    re.IGNORECASE,
)
_HAVE_SOME = re.compile(
    r"i(?:'ve got| have| also have) (?P<value>no|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}) "
    r"(?P<thing>child|children|kids?|sons?|daughters?|dogs?|cats?|brothers?|sisters?|siblings|grandchildren|horses?|cars?)\b",
    re.IGNORECASE,
)
_OTHER_NAMES = {
    "job": "occupation",
    "profession": "occupation",
    "home_town": "hometown",
    "company": "employer",
    "full_name": "name",
    "first_name": "name",
    "home_city": "location",
    "kids": "children",
    "kid": "children",
    "child": "children",
}
_UNIMPORTANT = re.compile(r"^(?:new|current|own|actual|real) ", re.IGNORECASE)
_NOT_ALL_OF_IT = re.compile(r"^(?:(?:on|called|named|an? (?=\w+ named ))|the (?=\d)) ?", re.IGNORECASE)
_MOST_THING_WORDS = 5
_MOST_VALUE_WORDS = 12


def read_possessions(clause: Clause) -> list[Extracted]:
    """Return what the clause says the user has, under a key made of its words."""
    found = _HAVE_NAMED.match(clause.text)
    if found:
        return _finding(f"{found['thing']} name", found["value"], clause)
    found = _HAVE_SOME.match(clause.text)
    if found:
        return _finding(found["thing"], found["value"], clause)
    found = next((found for found in (pattern.match(clause.text) for pattern in _MINE) if found), None)
    if found is None:
        return []
    thing = _UNIMPORTANT.sub("", found["thing"])
    return _finding(f"{thing} name" if found["called"] else thing, _NOT_ALL_OF_IT.sub("", found["value"]), clause)


def thing_key(thing: str) -> str:
    """Return the key of a thing in the user's words: "dog's name" is dog_name, "job" is occupation."""
    key = free_key(thing)
    return _OTHER_NAMES.get(key, key)


def _finding(thing: str, value: str, clause: Clause) -> list[Extracted]:
    value = trimmed(value)
    first = value.split(" ")[0].casefold().strip(",")
    is_number = thing in {"kids", "children"} or first.isdigit()
    if not value or (first in NO_VALUES and not is_number) or (first.endswith("ly") and first.islower()):
        return []
    if len(value.split(" ")) > _MOST_VALUE_WORDS or len(thing.split(" ")) > _MOST_THING_WORDS:
        return []
    if (first.endswith("ing") and value.islower() and " " in value) or thing.split(" ")[-1].casefold() in NO_THINGS:
        return []
    key = thing_key(thing)
    return [] if key == "name" else [Extracted(key, value, clause.evidence)]
