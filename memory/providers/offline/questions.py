"""Answers questions about what is known, by plain rules."""

import re
from collections.abc import Mapping, Sequence

from recollect.memory.language.punctuation import asks
from recollect.memory.language.words import word_set
from recollect.memory.providers.offline.possessions import thing_key
from recollect.memory.providers.offline.rules import canonical
from recollect.memory.providers.offline.tastes import DISLIKES, LIKES
from recollect.memory.providers.offline.wording import sentence, told_clause
from recollect.memory.values.fact import fold
from recollect.memory.values.frozen import frozen

UNKNOWN = "I don't know that yet."
_MOST_QUOTED_CHARACTERS = 300
_MOST_ASKED_CHARACTERS = 500
"""So much of a question is looked at: some of the patterns take the square of its length."""
_EMPTY = word_set(
    "a an the i me my mine am is are was were be been do does did have has had can could would will you your know "
    "knew remember recall tell told say said remind what s who where when why how which whose that this it of to "
    "in on at for from with about and or please again name called old many much kind any there if not m re ve d t "
    "ll right now still like love enjoy hate dislike"
)
_ABOUT_ME = re.compile(r"\babout (?:me|myself)\b|^what (?:have|did) (?:you|i) (?:learned|learnt|tell|told)(?: you)?$")
_TASTE = re.compile(
    r"\bi (?:really |also |still )?(?:don t |do not |not )?(?P<verb>like|love|enjoy|dislike|hate)\b ?(?P<thing>.*)"
)
_NEGATED = re.compile(r"\b(?:don t i|do i not|i don t|i do not)\b")
_TASTES = re.compile(r"\bmy (?P<kind>likes|interests|dislikes|hobbies)\b")
_ALLERGIES = re.compile(r"\ballerg(?:ic|y|ies)\b")
_MY = re.compile(r"\b(?:my|mein|meine|mon|ma|mi) (?P<thing>.+?)(?: (?:is|are|called|again|please|now|then|right))*$")
_YES_NO = re.compile(r"^(?:do i (?:live|work|study|come)|am i|is my|are my)\b")
_INTENTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"\b(?:what am i called|call me|hei(?:ss)e ich|je m appelle|me llamo|who am i)\b"), ("name",)),
    (re.compile(r"\b(?:how old|wie alt)\b(?!.*\bmy\b)"), ("age",)),
    (re.compile(r"\bborn\b"), ("birthplace", "birthday", "hometown")),
    (
        re.compile(r"\b(?:am i (?:originally )?from|i (?:originally )?come from|grow up|grew up)\b"),
        ("hometown", "birthplace"),
    ),
    (
        re.compile(r"\b(?:i live|i living|i based|am i now|i reside|wohne ich|j habite|vivo)\b"),
        ("location", "city", "home"),
    ),
    (
        re.compile(r"\b(?:who do i work for|where do i work|i employed)\b"),
        ("employer", "workplace", "company", "occupation"),
    ),
    (
        re.compile(r"\b(?:what do i do|i do for a living|do i work as|what am i by|i work as|do i work)\b"),
        ("occupation", "job", "job_title", "profession", "employer"),
    ),
    (re.compile(r"\bi study(?:ing)?\b"), ("studies",)),
    (re.compile(r"\bmy (?:nationality|citizenship)\b"), ("nationality",)),
    (re.compile(r"\bmy (?:home|city|town|location|place)\b"), ("location", "city", "home", "hometown")),
    (re.compile(r"\bmy (?:job|profession|occupation|work)\b"), ("occupation", "job", "job_title", "profession")),
    (re.compile(r"\bmy (?:employer|company)\b"), ("employer", "company")),
)


@frozen
class KnownTexts:
    """The texts that an answer may use: keyed facts, notes, the user's earlier messages, and passages."""

    facts: Mapping[str, str]
    notes: Sequence[str] = ()
    texts: Sequence[str] = ()
    passages: Sequence[str] = ()


def answer_question(question: str, known: KnownTexts) -> str:
    """Return one or more sentences, or `UNKNOWN` where nothing known fits."""
    asked = fold(question[:_MOST_ASKED_CHARACTERS])
    if _ABOUT_ME.search(asked) or (asked.endswith("who am i") and "name" not in known.facts):
        return _everything(known)
    return _of_tastes(asked, known.facts) or _of_facts(asked, known.facts) or _of_texts(asked, known) or UNKNOWN


def _everything(known: KnownTexts) -> str:
    lines = [sentence(told_clause(key, value)) for key, value in known.facts.items()] + list(known.notes)
    if not lines:
        return "I don't know anything about you yet."
    return "\n".join(["Here is what I know about you:", *(f"- {line}" for line in lines)])


def _of_tastes(asked: str, facts: Mapping[str, str]) -> str:
    found = _TASTE.search(asked)
    kinds = _TASTES.search(asked)
    if _ALLERGIES.search(asked):
        return _listed("You are allergic to", _values(facts, "allergy_", "allerg"))
    if found is None and (kinds is None or kinds["kind"] in facts):
        return ""
    negated = (found is not None and (found["verb"] in {"dislike", "hate"} or bool(_NEGATED.search(asked)))) or (
        kinds is not None and kinds["kind"] == "dislikes"
    )
    liked, disliked = _values(facts, LIKES, "like"), _values(facts, DISLIKES, "dislike")
    if found is not None and asked.startswith("do i ") and found["thing"]:
        thing = _without_end(found["thing"])
        for values, verb in ((liked, "like"), (disliked, "dislike")):
            value = next((value for value in values if _terms(value) & _terms(thing)), None)
            if value is not None:
                return f"{'Yes' if negated == (verb == 'dislike') else 'No'}, you {verb} {value}."
        return ""
    return _listed("You dislike", disliked) if negated else _listed("You like", liked)


def _values(facts: Mapping[str, str], prefix: str, word: str) -> list[str]:
    return [value for key, value in facts.items() if key.startswith(prefix) or key in {word, f"{word}s"}]


def _listed(opening: str, values: Sequence[str]) -> str:
    if not values:
        return ""
    return f"{opening} {' and '.join([', '.join(values[:-1]), values[-1]] if len(values) > 1 else values)}."


def _of_facts(asked: str, facts: Mapping[str, str]) -> str:
    key = _key_asked_for(asked, facts)
    if key is None:
        return _am_i(asked, facts)
    clause = told_clause(key, facts[key])
    if _YES_NO.match(asked):
        return f"{'Yes' if _terms(facts[key]) <= _terms(asked) else 'No'}, {clause}."
    return sentence(clause)


def _am_i(asked: str, facts: Mapping[str, str]) -> str:
    """Answer "Am I a nurse?", and likewise for German, vegan or Ada."""
    if not asked.startswith("am i "):
        return ""
    for key in ("name", "occupation", "nationality", "diet", "religion", "age", "hometown", "location"):
        if key in facts and _terms(facts[key]) and _terms(facts[key]) <= _terms(asked):
            return f"Yes, {told_clause(key, facts[key])}."
    return ""


def _key_asked_for(asked: str, facts: Mapping[str, str]) -> str | None:
    mine = _MY.search(asked)
    thing = _key_words(thing_key(mine["thing"])) if mine else frozenset[str]()
    if mine and _YES_NO.match(asked):
        opening = mine["thing"].replace(" s ", " ").replace(" called ", " name ").split(" ")
        for count in range(len(opening), 0, -1):
            asked_for = _key_words(thing_key(" ".join(opening[:count])))
            found = next((key for key in facts if _key_words(key) == asked_for), None)
            if found is not None:
                return found
    if thing:
        exact = [key for key in facts if _key_words(key) == thing]
        if exact:
            return exact[0]
    for pattern, keys in _INTENTS:
        if pattern.search(asked):
            found = next((key for key in keys if key in facts), None)
            if found is not None:
                return found
    if thing:
        wider = [key for key in facts if thing < _key_words(key) and not key.startswith((LIKES, DISLIKES))]
        return wider[0] if len(wider) == 1 and "name" not in thing else _key_within(asked, facts, at_least=2)
    return _key_within(asked, facts, at_least=1)


def _key_within(asked: str, facts: Mapping[str, str], *, at_least: int) -> str | None:
    """Return the longest key of which all words are in the question."""
    there = frozenset(_stem(word) for word in asked.split())
    fitting = [key for key in facts if len(_key_words(key)) >= at_least and _key_words(key) <= there and key != "name"]
    return max(fitting, key=lambda key: len(_key_words(key)), default=None)


def _key_words(key: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in canonical(key).split("_") if word not in {"s", "", "user", "the"})


def _of_texts(asked: str, known: KnownTexts) -> str:
    """Return the note, earlier text or passage with most words of the question; of equals the later."""
    wanted = _terms(asked)
    best, best_shared = "", 0
    for text in [*known.passages, *known.texts, *known.notes]:
        shared = len(wanted & _terms(text))
        if shared and shared >= best_shared and not asks(text):
            best, best_shared = text, shared
    if not best:
        return ""
    if best in known.notes:
        return f"I remember: {sentence(best)}"
    quoted = " ".join(best.split())
    shown = quoted if len(quoted) <= _MOST_QUOTED_CHARACTERS else quoted[: _MOST_QUOTED_CHARACTERS - 1] + "\u2026"
    return f"Your documents say: '{shown}'" if best in known.passages else f"You told me: '{shown}'"


def _terms(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in fold(text).split() if word not in _EMPTY)


def _stem(word: str) -> str:
    word = canonical(word)
    for ending in ("ies", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > len("in"):
            return word[: -len(ending)].rstrip("e") + ("y" if ending == "ies" else "")
    return word.rstrip("e") if len(word) > len("the") else word


def _without_end(text: str) -> str:
    return re.sub(r" (?:any ?more|still|or not)$", "", text)
