"""Reads what users say of themselves: place, origin, work, age, diet, allergies."""

import re
from collections.abc import Callable

from recollect.memory.providers.offline.clauses import Clause
from recollect.memory.providers.offline.finding import Extracted, free_key, trimmed
from recollect.memory.providers.offline.names import after_introduction
from recollect.memory.providers.offline.vocabulary import (
    DIETS,
    NATIONALITIES,
    NO_OCCUPATIONS,
    NO_PLACES,
    OCCUPATION_ENDINGS,
    OCCUPATIONS,
    RELIGIONS,
)

_ADVERB = r"(?:now |currently |actually |still |also |just |recently |mostly |really |both )*"
_HAVE = rf"(?:i've|i have) {_ADVERB}"
_SINCE = r"(?= .* since )"
_LIVES = re.compile(
    rf"(?:i {_ADVERB}(?:live|reside) in|{_HAVE}(?:lived|been living) in{_SINCE}"
    rf"|(?:i'm|i am) {_ADVERB}(?:living|based) in|ich wohne in|ich lebe in"
    r"|j'habite \u00e0|je vis \u00e0|vivo en) (?P<place>.+)",
    re.IGNORECASE,
)
_MOVED = re.compile(
    rf"(?:i|i've|i have) {_ADVERB}(?:moved|relocated) {_ADVERB}(?:back )?(?:from .{{1,60}}? )?to (?P<place>.+)",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"(?:i no longer live in|i don't live in|i do not live in|i'm not living in|i am not living in|i'm no longer in"
    r"|(?:i|i've|i have) (?:just |recently )?(?:moved away from|moved out of|left)) (?P<place>.+)",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"(?:i'm|i am|i come|ich komme aus|je viens de|soy de)(?: originally)?(?: from)? (?P<place>.+)", re.IGNORECASE
)
_BORN = re.compile(r"i was born in (?P<place>.+)", re.IGNORECASE)
_GREW_UP = re.compile(r"i grew up in (?P<place>.+)", re.IGNORECASE)
_AGE = re.compile(
    r"(?:(?:i'm|i am) (?:now |already |almost )?(?P<age>\d{1,3})(?: (?:years? old|yrs? old|now|years of age))?"
    r"|i (?:just |recently )?turned (?P<turned>\d{1,3})(?: .*)?)$",
    re.IGNORECASE,
)
_OLDEST = 130
_WORKS_AS = re.compile(
    rf"(?:i {_ADVERB}work as|{_HAVE}(?:worked|been working) as{_SINCE}"
    rf"|(?:i'm|i am) {_ADVERB}(?:working|employed) as|ich arbeite als|je travaille comme"
    r"|trabajo como) (?:(?:an?|the|une?|ein|eine) )?(?P<job>.+)",
    re.IGNORECASE,
)
_WORKS_AT = re.compile(
    rf"(?:i {_ADVERB}work (?:at|for)|{_HAVE}(?:worked|been working) (?:at|for){_SINCE}"
    rf"|(?:i'm|i am) {_ADVERB}(?:working|employed) (?:at|for|by)"
    rf"|i {_ADVERB}(?:joined|started (?:working )?at|got a job at)|i've {_ADVERB}(?:joined|started at)) "
    r"(?P<employer>.+)",
    re.IGNORECASE,
)
_WORKS_NOT_AT = re.compile(
    r"(?:i no longer work|i don't work|i do not work|i'm not working|i stopped working|i'm no longer) (?:at|for) "
    r"(?P<employer>.+)"
    r"|(?:i|i've|i have) (?:just |recently )?(?:quit|left)(?: my job (?:at|with))? (?P<quit>.+)",
    re.IGNORECASE,
)
_IS_NOT = re.compile(
    r"(?:i'm no longer|i am no longer|i'm not|i am not|i no longer work as|i don't work as|i stopped being) "
    r"(?:(?:an?|the) )?(?P<what>.+)",
    re.IGNORECASE,
)
_IS = re.compile(
    r"(?:i'm|i am)(?: now| currently| actually| also| just)* (?P<article>an? )?(?P<what>.+)", re.IGNORECASE
)
_ALLERGIC = re.compile(
    r"(?:i'm|i am) (?:also |very |severely |highly |really )*allergic to (?P<what>.+)", re.IGNORECASE
)
_ALLERGIC_NOT = re.compile(r"(?:i'm|i am) (?:not|no longer) allergic to (?P<what>.+)", re.IGNORECASE)
_STUDIES = re.compile(rf"(?:i {_ADVERB}study|(?:i'm|i am) {_ADVERB}studying) (?P<what>.+)", re.IGNORECASE)
_WITH_EMPLOYER = re.compile(r" (?:at|for|with) (?=(?:the )?[^a-z\W])")
_FROM_PLACE = re.compile(r" (?:from|in|based in|living in) (?=(?:the )?[^a-z\W])")
_PLACE_END = re.compile(
    r" (?:with|near|by|and i|for|on|in a|in an|in my|in the|since|after|before|as|so) .*", re.IGNORECASE
)
_LISTED = re.compile(r",? and | & |, ")
_MOST_WORDS = 6


def read_self(clause: Clause) -> list[Extracted]:
    """Return what the clause says of the user's place, work, age and the like; mostly an empty list."""
    for rule in _RULES:
        found = rule(clause)
        if found:
            return found
    return []


def _place(text: str, *, capital: bool = False) -> str:
    place = trimmed(_PLACE_END.sub("", text))
    first = place.removeprefix("the ").split(" ")[0]
    if not first or len(place.split(" ")) > _MOST_WORDS or place.split(" ")[0].casefold() in NO_PLACES - {"the"}:
        return ""
    if first.islower() and (
        capital or place.startswith("the ") or len(place.split(" ")) > len(("new", "york", "city"))
    ):
        return ""
    return "" if first.casefold() in NO_PLACES or not first[0].isalpha() else place


def _lives(clause: Clause) -> list[Extracted]:
    found = _LIVES.match(clause.text)
    place = _place(found["place"]) if found else ""
    if not place:
        found = _MOVED.match(clause.text)
        place = _place(found["place"], capital=True) if found else ""
    return [Extracted("location", place, clause.evidence)] if place else []


def _left(clause: Clause) -> list[Extracted]:
    found = _LEFT.match(clause.text)
    place = _place(found["place"]) if found else ""
    ends = [Extracted("location", place, clause.evidence, ends=True)] if place else []
    quit_it = _WORKS_NOT_AT.match(clause.text)
    employer = trimmed(quit_it["employer"] or quit_it["quit"] or "") if quit_it else ""
    return [*ends, Extracted("employer", employer, clause.evidence, ends=True)] if employer else ends


def _origin(clause: Clause) -> list[Extracted]:
    for pattern, key in ((_FROM, "hometown"), (_BORN, "birthplace"), (_GREW_UP, "hometown")):
        found = pattern.match(clause.text)
        if found and (key != "hometown" or pattern is _GREW_UP or _says_from(clause.text)):
            place = _place(found["place"], capital=True)
            return [Extracted(key, place, clause.evidence)] if place else []
    return []


def _says_from(text: str) -> bool:
    opening = text[:30].casefold()
    return opening.startswith(("ich komme aus ", "je viens de ", "soy de ")) or " from " in opening


def _age(clause: Clause) -> list[Extracted]:
    found = _AGE.match(clause.text)
    age = int(found["age"] or found["turned"]) if found else 0
    return [Extracted("age", str(age), clause.evidence)] if 0 < age <= _OLDEST else []


def _work(clause: Clause) -> list[Extracted]:
    found = _WORKS_AS.match(clause.text)
    if found:
        return _job(found["job"], clause.evidence)
    found = _WORKS_AT.match(clause.text)
    employer = trimmed(re.split(r" (?:as|in|on) ", found["employer"])[0]) if found else ""
    if not employer or employer.removeprefix("the ")[:1].islower():
        return []
    findings = [Extracted("employer", employer, clause.evidence)]
    as_job = re.search(r" as (?:an? |the )?(.+)", clause.text)
    return findings + (_job(as_job[1], clause.evidence) if as_job else [])


def _job(text: str, evidence: str) -> list[Extracted]:
    job, *employer = _WITH_EMPLOYER.split(text, maxsplit=1)
    job, *_place_of_it = _FROM_PLACE.split(job, maxsplit=1)
    job = trimmed(re.split(r" (?:at|for|in|with|who|and|from|on) ", job)[0])
    if not job or len(job.split(" ")) > _MOST_WORDS:
        return []
    findings = [Extracted("occupation", job, evidence)]
    at = trimmed(_FROM_PLACE.split(employer[0])[0]) if employer else ""
    return [*findings, Extracted("employer", at, evidence)] if at else findings


def _is(clause: Clause) -> list[Extracted]:
    found = _IS.match(clause.text)
    rest = after_introduction(clause).lstrip(", ")
    if rest:
        return _origin(Clause(f"I'm {rest}", clause.evidence)) + _described(Clause(f"I'm {rest}", clause.evidence))
    return _described(clause) if found else []


def _described(clause: Clause) -> list[Extracted]:
    found = _IS.match(clause.text)
    if found is None:
        return []
    what = found["what"]
    plain = trimmed(re.split(r" (?:and|from|living|in) ", what)[0])
    single = plain.split(" ")[0].casefold() if plain.count(" ") == 0 or not found["article"] else ""
    for key, known in (("diet", DIETS), ("religion", RELIGIONS), ("nationality", NATIONALITIES)):
        if single in known and plain.casefold() == single:
            return [Extracted(key, plain, clause.evidence)]
    if found["article"] and _is_occupation(what):
        from_place = re.search(r" from ((?:the )?[^a-z\W].*)", what)
        place = _place(from_place[1], capital=True) if from_place else ""
        based = re.search(r" (?:living|based) in ((?:the )?[^a-z\W].*)", what)
        home = _place(based[1], capital=True) if based else ""
        return [
            *_job(what, clause.evidence),
            *([Extracted("hometown", place, clause.evidence)] if place else []),
            *([Extracted("location", home, clause.evidence)] if home else []),
        ]
    return []


def _is_occupation(text: str) -> bool:
    job = trimmed(re.split(r" (?:at|for|in|with|who|and|from|of|by|on|based|living) |, ", text)[0])
    last = job.split(" ")[-1].casefold()
    if not job or len(job.split(" ")) > len(("senior", "backend", "software", "engineer")) or last in NO_OCCUPATIONS:
        return False
    return last in OCCUPATIONS or (len(last) > len("other") - 1 and last.endswith(OCCUPATION_ENDINGS))


def _is_not(clause: Clause) -> list[Extracted]:
    found = _IS_NOT.match(clause.text)
    what = trimmed(found["what"]) if found else ""
    keys = ("occupation", "diet", "nationality", "religion", "hometown")
    return [Extracted(key, what.removeprefix("from "), clause.evidence, ends=True) for key in keys] if what else []


def _allergies(clause: Clause) -> list[Extracted]:
    for pattern, ends in ((_ALLERGIC, False), (_ALLERGIC_NOT, True)):
        found = pattern.match(clause.text)
        if found:
            listed = [trimmed(item) for item in _LISTED.split(found["what"])]
            return [Extracted(free_key(item, "allergy_"), item, clause.evidence, ends) for item in listed if item]
    return []


def _studies(clause: Clause) -> list[Extracted]:
    found = _STUDIES.match(clause.text)
    what = trimmed(re.split(r" (?:at|in|for|with|to) ", found["what"])[0]) if found else ""
    return [Extracted("studies", what, clause.evidence)] if what and len(what.split(" ")) <= _MOST_WORDS else []


_RULES: tuple[Callable[[Clause], list[Extracted]], ...] = (
    _allergies,
    _left,
    _lives,
    _origin,
    _age,
    _work,
    _studies,
    _is_not,
    _is,
)
